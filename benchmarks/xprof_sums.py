"""The numbers that XProf shows of a trace, added up by our reader of traces, in XProf's definitions.

It counts more than we do: events outside of steps, calls of functions, the stages of the input pipeline, and pieces
of memory as calls that take no time.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from castmates.traces.nesting import Ints, in_order, nested, own
from castmates.traces.operations import read_trace
from castmates.traces.xspace import Events, Line, Plane, Space
from castmates.workloads.tfmodels.xspace import HOST, STEP
from tests.unit.trace_maker import write_trace

NAME, TYPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*"), re.compile(r"[A-Z_]\w*", re.ASCII)
STAGE, WAITS = "Iterator", "iteratorgetnext"
NUMBER, OPERATION = "step_num", "tf_op"
LISTED = 400  # operations of a trace that are named in its copy; the others are put together


@dataclass(frozen=True)
class Sums:
    """Of a trace: calls and own picoseconds by operation, and by step how long it took and how long it waited."""

    calls: Counter[str]
    own_ps: Counter[str]
    steps: dict[int, tuple[int, int]]
    overlapping: int  # events that end after the one that they began in


def name_of(event: str) -> str | None:
    """What XProf calls the operation of an event; None where it is none."""
    name, colon, type_ = event.partition(":")
    if name == STAGE and colon:
        return event
    return name if NAME.fullmatch(name) and TYPE.fullmatch(type_) else None


def sums(file: Path) -> Sums:
    """Add a whole trace up."""
    found = Sums(Counter(), Counter(), {}, 0)
    steps: list[tuple[int, int, int]] = []
    waits: list[tuple[int, int]] = []
    overlapping = 0
    with Space(file) as space:
        plane = next(plane for plane in space.planes() if plane.name == HOST)
        for line in plane.lines():
            overlapping += _operations(plane, line, found)
            _marks(plane, line, steps, waits)
    waits.sort()
    timed = {number: (end - begin, _covered(waits, begin, end)) for number, begin, end in steps}
    return Sums(found.calls, found.own_ps, timed, overlapping)


def _operations(plane: Plane, line: Line, found: Sums) -> int:
    """Count a thread's operations; returns how many overlap."""
    names = {number: name_of(name.name) for number, name in plane.event_names.items()}
    kinds, begins, ends = [], [], []
    for events in line.events((OPERATION,)):
        there = np.array([names[kind] is not None for kind in events.kinds.tolist()], bool)
        kinds.append(events.kinds[there])
        begins.append(events.offset_ps[there])
        ends.append((events.offset_ps + events.duration_ps)[there])
        for of in events.stats.get(OPERATION, {}).values():
            found.calls[str(of).partition(":")[0]] += 1  # a piece of memory, which takes no time
    if not kinds:
        return 0
    kind, begin, end = map(np.concatenate, (kinds, begins, ends))
    order = in_order(begin, end)
    kind, begin, end = kind[order], begin[order], end[order]
    parent, cut = nested(begin, end)
    for number, ps in zip(kind.tolist(), own(begin, cut, parent).tolist(), strict=True):
        name = names[number]
        assert name is not None
        found.calls[name] += 1
        found.own_ps[name] += ps
    return int((cut != end).sum())


def _marks(plane: Plane, line: Line, steps: list[tuple[int, int, int]], waits: list[tuple[int, int]]) -> None:
    """Note the steps and the waits for input that a thread marked."""
    names = {number: name.name for number, name in plane.event_names.items()}
    for events in line.events((NUMBER,)):
        for place, begin, end in _spans(line, events):
            name = names[int(events.kinds[place])]
            if name == STEP:
                steps.append((int(events.stats[NUMBER].get(place, 0)), begin, end))
            elif name.lower().startswith(WAITS):
                waits.append((begin, end))


def _spans(line: Line, events: Events) -> Iterator[tuple[int, int, int]]:
    begins: Ints = 1000 * line.timestamp_ns + events.offset_ps
    yield from zip(range(len(begins)), begins.tolist(), (begins + events.duration_ps).tolist(), strict=True)


def _covered(spans: list[tuple[int, int]], begin: int, end: int) -> int:
    """How much of a step these spans cover, which are in order."""
    covered, reached = 0, begin
    for first, last in spans:
        covered += max(0, min(last, end) - max(first, reached))
        reached = max(reached, min(last, end))
    return covered


def as_we_count(file: Path, copy: Path) -> Sums:
    """Write a copy of a trace that has the calls of our tables alone, by number; what our tables have of them."""
    trace = read_trace(file)
    calls = trace.calls
    largest = np.argsort(-np.bincount(calls.operation, calls.own_ps), kind="stable")[:LISTED]
    names = {int(place): f"operation_{place}" for place in largest}
    named = [names.get(place, "others") for place in calls.operation.tolist()]
    threads = {
        str(number): [
            (int(calls.begin_ps[place]), int(calls.end_ps[place]), f"{named[place]}:Operation")
            for place in np.flatnonzero(calls.thread == number).tolist()
        ]
        for number in range(len(trace.threads))
    }
    write_trace(copy, threads)
    found = Sums(Counter(named), Counter(), {}, 0)
    for name, ps in zip(named, calls.own_ps.tolist(), strict=True):
        found.own_ps[name] += ps
    return found
