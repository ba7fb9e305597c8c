"""Which recorders a scene has: perf's events of the members' processes, their sampled stacks, and sampled loads."""

import os
import shutil
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from castmates.english import counted
from castmates.linux import open_files
from castmates.linux.processes import threads_of
from castmates.linux.tracing_rights import FAMILIES, Rights, arguments, rights
from castmates.machine.latency_sources import latency_source
from castmates.machine.probes import how_instructions_count
from castmates.protocols import Sample
from castmates.runner.processes.launch import Start
from castmates.runner.tracing import latencies, stacks
from castmates.runner.tracing.perf_recorder import PerfRecorder
from castmates.runner.tracing.recorded import Events, Recorded
from castmates.study.spec import Launch
from castmates.study.trace_launches import recorded_members
from castmates.study.tracing_design import LATENCIES, STACKS, Tracing

PERF = "perf"
SERIES = ("resctrl", "pqos", "counters", "gpus", "topdown")  # sources that are read between the edges of a window
PAGES = 4096
TRIES = 4  # of perf's start


def begun(
    launch: Launch, out: Recorded, raw: Path, pids_of: Callable[[str, bool], list[int]]
) -> dict[str, PerfRecorder]:
    """Start the recorders of a scene, switched off; why one cannot be had is noted in what is recorded.

    `pids_of` lists the processes of a member, or its first one alone. A process that ends before perf has found it
    makes perf fail, so it is tried anew; in the end with those alone that stay, whose children are followed.
    """
    tracing, can = launch.design.tracing, rights()
    assert tracing is not None
    members = [name for name in recorded_members(launch) if name in out.scene.active]
    wanted = {
        PERF: ([each for each in FAMILIES if each in tracing.events], can.switches, _events_command),
        STACKS: ([each for each in tracing.events if each == STACKS], can.stacks, _stacks_command),
        LATENCIES: ([each for each in tracing.events if each == LATENCIES], can.stacks, _latencies_command),
    }
    found: dict[str, PerfRecorder] = {}
    for name, (events, can_be_had, command_of) in wanted.items():
        if not events:
            continue
        if not members:
            out.events[name] = Events(reason="none of the members that are to be recorded is in this scene")
        elif not can_be_had:
            out.events[name] = Events(reason=why_nothing(can))
        elif name == LATENCIES and latency_source(Path("/")) is None:
            out.events[name] = Events(reason=latencies.NO_SOURCE)
        else:
            recorder = _started(name, raw, partial(command_of, tracing, can), members, pids_of)
            if isinstance(recorder, str):
                out.events[name] = Events(reason=recorder)
            else:
                found[name] = recorder
    return found


def why_nothing(can: Rights) -> str:
    """Why a recorder cannot be had at all; the record has each reason as a sentence."""
    return "; ".join(can.reasons) or "the kernel refuses it"


def _started(
    name: str,
    raw: Path,
    command_of: Callable[[Sequence[int], Path, str], list[str]],
    members: Sequence[str],
    pids_of: Callable[[str, bool], list[int]],
) -> PerfRecorder | str:
    """A recorder that has begun, or why none was started."""
    file = raw / f"{name}.data"
    for attempt in range(TRIES):
        pids = [pid for member in members for pid in pids_of(member, attempt == TRIES - 1)]
        if too_many := _too_many_files(command_of(pids, file, ""), pids):
            return too_many
        recorder = PerfRecorder(partial(command_of, pids, file), file)
        if recorder.start():
            break
        recorder.kill()
    return recorder


def _too_many_files(command: Sequence[str], pids: Sequence[int]) -> str:
    """Why perf could not follow these processes, where it would need more open files than it may have."""
    events, cpus = sum(word in ("-e", "--event") for word in command), os.cpu_count() or 1
    threads = sum(len(threads_of(pid)) for pid in pids)
    needed, most = open_files.needed(events, threads, cpus), open_files.most()
    if needed <= most:
        return ""
    return (
        f"perf would need {needed:,} open files ({counted(events, 'event')} of {counted(threads, 'thread')} on "
        f"{counted(cpus, 'CPU')}), and may have {most:,}: record fewer families (`--events`) or members "
        "(`--members`), or raise the limit (`ulimit -Hn`, as root beforehand)"
    )


def is_series(sample: Sample) -> bool:
    """Whether a sample is one of many between the edges of a recording, and no total."""
    return sample.source in SERIES


def prepare(start: Start, events: Collection[str]) -> None:
    """Let a member name the code that it compiles while it runs, where stacks are wanted; before its start."""
    python = _python_of(start)
    if STACKS in events and python is not None:
        start.environment.update(stacks.environment(python))


def _python_of(start: Start) -> tuple[int, int] | None:
    """The version of the Python that a member runs in, by the folder of its libraries; None where it runs none."""
    program = shutil.which(start.command[0], path=start.environment["PATH"])
    if program is None or not Path(program).name.startswith("python"):
        return None
    found = sorted((Path(program).parent.parent / "lib").glob("python3.*"))
    number = found[-1].name.removeprefix("python3.") if found else ""
    return (3, int(number)) if number.isdecimal() else None


def _events_command(tracing: Tracing, can: Rights, pids: Sequence[int], file: Path, control: str) -> list[str]:
    """perf's command line, which ends at a size; a buffer is as large as the study has it, if it has one."""
    events = [each for each in FAMILIES if each in tracing.events]
    words = arguments(events, file, rights=can, pids=pids, control=control)
    if tracing.buffer:
        words[words.index("-m") + 1] = f"{1 << max(1, tracing.buffer // PAGES).bit_length() - 1}"
    return [*words, f"--max-size={max(1, tracing.most >> 10)}K"]


def _stacks_command(tracing: Tracing, can: Rights, pids: Sequence[int], file: Path, control: str) -> list[str]:
    event, in_user_space = stacks.event_of(how_instructions_count())
    _, *words = stacks.arguments(
        pids,
        file,
        event=event,
        user_only=in_user_space or not can.kernel,
        call_graph=stacks.call_graph(),
        largest=min(tracing.most, stacks.LARGEST),
    )
    return [can.program, *words, "-D", "-1", f"--control={control}"]


def _latencies_command(tracing: Tracing, can: Rights, pids: Sequence[int], file: Path, control: str) -> list[str]:
    source = latency_source(Path("/"))
    assert source is not None
    largest = min(tracing.most, stacks.LARGEST)
    _, *words = latencies.arguments(source, pids, file, largest=largest, user_only=not can.kernel)
    return [can.program, *words, "-D", "-1", f"--control={control}"]
