"""What TensorFlow's allocators give out and take back in the steps of a trace."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from castmates.traces.operations import Ints, Trace, identity, step_of
from castmates.traces.xspace import Line, Plane, Space
from castmates.workloads.tfmodels.xspace import HOST

GIVEN, TAKEN = "MemoryAllocation", "MemoryDeallocation"
STATS = ("allocator_name", "bytes_allocated", "allocation_bytes", "peak_bytes_in_use", "tf_op")


@dataclass(frozen=True)
class Memory:
    """Allocations and what was given back, in the order of time."""

    at_ps: Ints
    step: Ints  # from 0; -1 outside of steps
    change: Ints  # bytes; negative where memory was given back
    in_use: Ints  # bytes of its allocator, right after
    peak: Ints  # the same at most, since the job's start
    allocator: list[str]
    operation: list[str]  # for which it was; "" where that is not known


def read_memory(path: Path, trace: Trace) -> Memory:
    """Read what allocators reported in a trace that was read; nothing where they reported nothing."""
    rows: list[tuple[int, int, int, int, str, str]] = []
    with Space(path) as space:
        for plane in space.planes():
            if plane.name == HOST:
                rows += _rows(plane, trace)
    rows.sort(key=lambda row: row[0])
    at, change, in_use, peak = (np.array([row[place] for row in rows], np.int64) for place in range(4))
    step = step_of(at, trace.step_begin_ps, trace.step_end_ps)
    return Memory(at, step, change, in_use, peak, [row[4] for row in rows], [row[5] for row in rows])


def _rows(plane: Plane, trace: Trace) -> list[tuple[int, int, int, int, str, str]]:
    signs = {number: sign for number, name in plane.event_names.items() if (sign := _sign(name.name))}
    return [row for line in plane.lines() for row in _of_line(line, signs, trace)] if signs else []


def _sign(name: str) -> int:
    return {GIVEN: 1, TAKEN: -1}.get(name, 0)


def _of_line(line: Line, signs: dict[int, int], trace: Trace) -> list[tuple[int, int, int, int, str, str]]:
    start, rows = 1000 * (line.timestamp_ns - trace.first_ns), []
    for events in line.events(STATS, signs):
        kinds = events.kinds.tolist()
        for place in [place for place, kind in enumerate(kinds) if kind in signs]:
            facts = {name: values.get(place, 0) for name, values in events.stats.items()}
            rows.append(
                (
                    start + int(events.offset_ps[place]),
                    signs[kinds[place]] * _number(facts.get("allocation_bytes")),
                    _number(facts.get("bytes_allocated")),
                    _number(facts.get("peak_bytes_in_use")),
                    str(facts.get("allocator_name") or ""),
                    identity(str(facts.get("tf_op") or "")),
                )
            )
    return rows


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
