"""Which recorders a scene has: perf's events of the members' processes, and their sampled stacks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from castmates.linux.thread_blocks import tids_of
from castmates.linux.tracing_rights import FAMILIES, Rights, arguments, rights
from castmates.protocols import Sample
from castmates.runner.rounds.stage import Stage
from castmates.runner.tracing.perf_recorder import PerfRecorder
from castmates.runner.tracing.recorded import Events, Recorded
from castmates.study.spec import Block, Tracing
from castmates.study.trace_launches import recorded_members

PERF, STACKS = "perf", "stacks"
SERIES = ("resctrl", "pqos", "counters", "gpus")  # sources that are read between the edges of a window

__all__ = ["PERF", "STACKS", "chosen", "is_series", "tids_of"]


def chosen(stage: Stage, block: Block, out: Recorded, raw: Path) -> Mapping[str, PerfRecorder]:
    """The recorders of a scene by name; those that cannot be had are noted in what is recorded."""
    tracing, can = block.design.tracing, rights()
    assert tracing is not None
    pids = [pid for name in recorded_members(block) for pid in out.pids.get(name, ())]
    found: dict[str, PerfRecorder] = {}
    for name, wanted, lacks in (
        (PERF, [each for each in FAMILIES if each in tracing.events], not can.switches),
        (STACKS, [each for each in tracing.events if each == STACKS], not can.stacks),
    ):
        if not wanted:
            continue
        if not pids:
            out.events[name] = Events(reason="none of the members that are to be recorded is in this scene")
        elif lacks:
            out.events[name] = Events(reason=_why(can))
        else:
            file = raw / f"{name}.data"
            found[name] = PerfRecorder(
                lambda control, name=name, file=file: _command(name, tracing, can, pids, file, control), file
            )
    return found
