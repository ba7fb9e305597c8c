"""Which recorders a scene has: perf's events of the members' processes, and their sampled stacks."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from castmates.linux.tracing_rights import FAMILIES, Rights, arguments, rights
from castmates.protocols import Sample
from castmates.runner.tracing.perf_recorder import PerfRecorder
from castmates.runner.tracing.recorded import Events, Recorded
from castmates.study.spec import Block, Tracing
from castmates.study.trace_launches import recorded_members

PERF, STACKS = "perf", "stacks"
STACKS_HZ = 99  # samples a second of each CPU's time: no divisor of what programs do regularly
SERIES = ("resctrl", "pqos", "counters", "gpus", "topdown")  # sources that are read between the edges of a window
PAGES = 4096


def chosen(block: Block, out: Recorded, raw: Path) -> Mapping[str, PerfRecorder]:
    """The recorders of a scene by name; why one cannot be had is noted in what is recorded."""
    tracing, can = block.design.tracing, rights()
    assert tracing is not None
    pids = [pid for name in recorded_members(block) for pid in out.pids.get(name, ())]
    wanted = {
        PERF: ([each for each in FAMILIES if each in tracing.events], can.switches),
        STACKS: ([each for each in tracing.events if each == STACKS], can.stacks),
    }
    found = {}
    for name, (events, can_be_had) in wanted.items():
        if not events:
            continue
        if not pids:
            out.events[name] = Events(reason="none of the members that are to be recorded is in this scene")
        elif not can_be_had:
            out.events[name] = Events(reason="; ".join(can.reasons) or "the kernel refuses it")
        else:
            file = raw / f"{name}.data"
            found[name] = PerfRecorder(partial(_command, name, tracing, can, pids, file), file)
    return found


def is_series(sample: Sample) -> bool:
    """Whether a sample is one of many between the edges of a recording, and no total."""
    return sample.source in SERIES


def _command(name: str, tracing: Tracing, can: Rights, pids: Sequence[int], file: Path, control: str) -> list[str]:
    """perf's command line, which ends at a size; a buffer is as large as the study has it, if it has one."""
    events = [each for each in FAMILIES if each in tracing.events and name == PERF]
    hz = STACKS_HZ if name == STACKS else 0
    words = arguments(events, file, rights=can, pids=pids, control=control, stacks_hz=hz)
    if tracing.buffer:
        words[words.index("-m") + 1] = f"{1 << max(1, tracing.buffer // PAGES).bit_length() - 1}"
    return [*words, f"--max-size={max(1, tracing.most >> 10)}K"]
