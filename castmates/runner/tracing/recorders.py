"""Which recorders a scene has: perf's events of the members' processes, their sampled stacks, and sampled loads."""

import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from castmates.counters.package.collector import GHZ, BusyClock
from castmates.counters.proc.frequency import DRIVER, Frequency
from castmates.english import counted, listed
from castmates.linux import open_files
from castmates.linux.host import cpu_ticks
from castmates.linux.memory_binding import numa_maps
from castmates.linux.processes import TICK_S, cpu_ns_of_process, resident_bytes, threads_of
from castmates.linux.tracing_rights import FAMILIES, Rights, arguments, rights, why_not_sampled
from castmates.machine.probes import how_instructions_count
from castmates.machine.quirks import latency_source
from castmates.machine.topology import NumaNode
from castmates.protocols import Sample
from castmates.runner.processes.launch import Start
from castmates.runner.tracing import stacks
from castmates.runner.tracing.recorded import Events, PerfRecorder, Recorded
from castmates.sampler import Sampler
from castmates.study.spec import LATENCIES, STACKS, Launch, Tracing
from castmates.study.trace_launches import recorded_members

PERF, COUNTS = "perf", "counts"
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
    why = {one: why_not_sampled(*one, can) if can.switches and members else "" for one in tracing.counts}
    if any(why.values()):
        words = listed([f"{event} ({reason})" for (event, _), reason in why.items() if reason])
        out.events[COUNTS] = Events(reason=f"perf cannot sample {words}")
    tracing = tracing.model_copy(update={"counts": tuple(one for one, reason in why.items() if not reason)})
    families = [each for each in FAMILIES if each in tracing.events]
    wanted = {
        PERF: ([*families, *tracing.counts], can.switches, _events_command),
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
            out.events[name] = Events(reason=stacks.NO_SOURCE)
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
    wanted, most = open_files.needed(events, threads, cpus), open_files.most()
    if wanted <= most:
        return ""
    return (
        f"perf would need {wanted:,} open files ({counted(events, 'event')} of {counted(threads, 'thread')} on "
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
    words = arguments(events, file, rights=can, pids=pids, counts=tracing.counts, control=control)
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
    _, *words = stacks.load_arguments(source, pids, file, largest=largest, user_only=not can.kernel)
    return [can.program, *words, "-D", "-1", f"--control={control}"]


# Numbers that are read while a trace is recorded, some times a second: of each member, and of each CPU.

RATE = 10.0  # looks a second
CPU_SHARE, MEMORY, BUSY, CPU_GHZ = "cpu_share", "memory_bytes", "busy_share", "cpu_ghz"
UNITS: Mapping[str, str] = {CPU_SHARE: "CPUs", MEMORY: "B", BUSY: "", CPU_GHZ: "GHz"}
SOURCE = "numbers"
_BUSY, _ALL = (1, 2, 3, 6, 7), (1, 2, 3, 4, 5, 6, 7, 8)  # columns of a CPU's line of /proc/stat
NO_GHZ = "the clock of CPUs: this kernel shows none that changes (virtual machines show the nominal one)"


class Numbers:
    """Reads them in a thread from `start` to `finish`."""

    def __init__(self, cpus: Sequence[int], pids_of: Callable[[str], list[int]]) -> None:
        self._cpus, self._pids_of = tuple(cpus), pids_of
        self._clock = _clock(cpus)
        self._members: tuple[str, ...] = ()
        self._last: tuple[int, dict[str, dict[int, int]], dict[int, list[bytes]]] | None = None
        self._thread: Sampler | None = None

    def start(self, members: Sequence[str]) -> None:
        """Begin to look."""
        self._members, self._last = tuple(members), None
        if self._clock:
            self._clock.attach({})
            self._clock.start(members)
        self._thread = Sampler("numbers", lambda: list(self._look()), 1 / RATE, edges=True)
        self._thread.start()

    def finish(self) -> list[Sample]:
        """End it and return what was read; safe where it never began."""
        thread, self._thread = self._thread, None
        try:
            return thread.finish() if thread else []
        finally:
            if self._clock:
                self._clock.close()

    def _look(self) -> Iterator[Sample]:
        now, ticks = time.monotonic_ns(), cpu_ticks(set(self._cpus))
        spent: dict[str, dict[int, int]] = {}
        for member in self._members:
            pids = self._pids_of(member)
            known = {pid: cpu_ns_of_process(pid) for pid in pids}
            spent[member] = {pid: cpu_ns for pid, cpu_ns in known.items() if cpu_ns is not None}
            yield Sample(now, SOURCE, member, MEMORY, float(sum(resident_bytes(pid) or 0 for pid in pids)))
        last, self._last = self._last, (now, spent, ticks)
        if last is None or now <= last[0]:
            return
        passed = now - last[0]
        for member, after in spent.items():
            used = sum(cpu_ns - last[1].get(member, {}).get(pid, 0) for pid, cpu_ns in after.items())
            yield Sample(now, SOURCE, member, CPU_SHARE, max(0, used) / passed)
        for cpu in self._cpus:
            if (before := last[2].get(cpu)) and (line := ticks.get(cpu)):
                whole = _passed(before, line, _ALL)
                if whole >= TICK_S:
                    yield Sample(now, SOURCE, f"cpu{cpu}", BUSY, min(1.0, _passed(before, line, _BUSY) / whole))
        yield from self._ghz()

    def _ghz(self) -> Iterator[Sample]:
        if self._clock is None:
            return
        for sample in self._clock.stop():
            if sample.value is not None and sample.metric == GHZ:
                yield Sample(sample.t_ns, SOURCE, sample.subject, CPU_GHZ, sample.value)
            elif sample.value is not None and sample.note == DRIVER:
                yield Sample(sample.t_ns, SOURCE, sample.subject, CPU_GHZ, sample.value / 1e3)
        self._clock.start(self._members)


def _clock(cpus: Sequence[int]) -> BusyClock | Frequency | None:
    """What shows how fast CPUs run: the mean over all that ran, or else the moment's."""
    busy = BusyClock(cpus)
    if busy.available() is None:
        return busy
    frequency = Frequency(cpus)
    frequency.start(())
    return frequency if any(sample.note == DRIVER for sample in frequency.stop()) else None


def _passed(before: Sequence[bytes], after: Sequence[bytes], columns: Sequence[int]) -> float:
    return max(0, sum(int(after[column]) - int(before[column]) for column in columns)) * TICK_S


# Numbers that were read while a scene was recorded, as they come into a timeline: with units, and as rates.

BYTES = {"llc_occupancy": ("llc_occupancy_bytes", "B"), "mbm_total": ("memory_bytes_per_s", "B/s")}
COUNTERS = "counters"  # their series counts from the opening edge on
CLOCKS = ("task-clock", "cpu-clock")  # nanoseconds of CPU time
Readings = Sequence[tuple[int, float]]  # by time


class Series(NamedTuple):
    """Readings of one number of a member or a CPU."""

    subject: str
    name: str
    unit: str
    source: str
    readings: Readings


def series(samples: Iterable[Sample]) -> Iterator[Series]:
    """Sort samples by what they are of; what counters have counted so far becomes a rate."""
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for sample in samples:
        if sample.value is not None:
            found.setdefault((sample.subject, sample.metric, sample.source), []).append((sample.t_ns, sample.value))
    for (subject, metric, source), readings in found.items():
        if source != COUNTERS:
            name, unit = BYTES.get(metric, (metric, UNITS.get(metric, "")))
            yield Series(subject, name, unit, source, readings)
        elif metric in CLOCKS:
            yield Series(subject, metric, "CPUs", source, [(t_ns, value / 1e9) for t_ns, value in _rates(readings)])
        else:
            yield Series(subject, metric, "/s", source, _rates(readings))


def _rates(readings: Readings) -> Readings:
    """What was counted between readings, per second, at the time of the later one."""
    pairs = pairwise(_apart(sorted(readings)))
    return [(now, (value - before) / (now - since) * 1e9) for (since, before), (now, value) in pairs if now > since]


def _apart(readings: Readings) -> Readings:
    """Without readings that come so soon after another one that the moment's error decides their rate.

    A thread that loses its CPU between the reading and the clock notes a moment too late; the later reading stays.
    """
    least = median([now - since for (since, _), (now, _) in pairwise(readings)] or [0]) / 4
    kept: list[tuple[int, float]] = []
    for reading in readings:
        if len(kept) > 1 and reading[0] - kept[-1][0] < least:
            kept.pop()
        if not kept or reading[0] - kept[-1][0] >= least:
            kept.append(reading)
    return kept


# How much of a member's memory lies on other nodes than its CPUs, read from /proc/PID/numa_maps.

_REMOTE_SOURCE, METRIC = "numa_maps", "remote_memory_share"
_PAGES = re.compile(r"\bN(\d+)=(\d+)")
_SIZE = re.compile(r"\bkernelpagesize_kB=(\d+)")


def near_nodes(cpus: Collection[int], nodes: Sequence[NumaNode]) -> set[int] | None:
    """The nodes of these CPUs; None where the machine has one node alone, so that nothing can be remote."""
    return {node.id for node in nodes if set(node.cpus) & set(cpus)} if len(nodes) > 1 else None


def remote_share(texts: Iterable[str], near: Collection[int]) -> float | None:
    """The share of resident memory that lies on other nodes, over the maps of processes; None where none is known.

    A line counts pages of its own size: those of huge pages are larger.
    """
    kib: dict[bool, int] = {True: 0, False: 0}
    for line in (line for text in texts for line in text.splitlines()):
        size = _SIZE.search(line)
        for node, pages in _PAGES.findall(line):
            kib[int(node) in near] += int(pages) * (int(size[1]) if size else 4)
    whole = sum(kib.values())
    return kib[False] / whole if whole else None


def remote_sample(t_ns: int, member: str, pids: Iterable[int], near: Collection[int] | None) -> list[Sample]:
    """The reading of a member's processes as they are now, noted for a moment; none where it is not known."""
    share = remote_share(map(numa_maps, pids), near) if near else None
    return [] if share is None else [Sample(t_ns, _REMOTE_SOURCE, member, METRIC, share)]
