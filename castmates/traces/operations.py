"""The calls of operations in the profiled steps of a job, from the XSpace that TensorFlow wrote.

Times are picoseconds from the earliest line of the trace: as whole numbers they neither overflow nor lose anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from castmates.analysis.explanations.layers import RUNTIME, WRAPPING, LayerPlace, layer_place, optimizer_scopes
from castmates.analysis.operations.instructions import NOTHING_KNOWN, Work
from castmates.errors import CastmatesError
from castmates.traces.nesting import NOBODY, Threads, in_order, nested, own, shared_by_parts
from castmates.traces.xspace import Line, Plane, Space
from castmates.workloads.tfmodels.xspace import CONTAINERS, EAGER, FETCH, FETCHES, HOST, INPUT_THREADS, OPERATION, STEP

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
TASK = "Task Environment"  # the plane that has what holds for the profile
WORKS, WAITS, FEEDS, BETWEEN = range(4)  # levels: what counts only where nothing of an earlier level runs
OUTSIDE = -1


@dataclass(frozen=True)
class Operation:
    """What an event is a call of."""

    name: str  # with its scopes, without the functions around it
    type: str
    place: LayerPlace
    level: int
    work: Work = NOTHING_KNOWN  # of one call, as the trace shows it
    data_type: str = ""  # of the first numbers that it takes


@dataclass(frozen=True)
class Calls:
    """The calls of a trace, column by column, in the order of their threads and times."""

    operation: Ints  # places in `operations`
    thread: Ints  # places in `threads`
    step: Ints  # from 0; -1 for a call that began before the first step or between two
    begin_ps: Ints  # cut to what calls it
    end_ps: Ints
    own_ps: Ints  # without what it calls
    shared_ps: Floats  # its part of the steps, where each moment is divided among all that works
    parent: Ints  # the place of the call that it is part of; -1 for none


@dataclass(frozen=True)
class Trace:
    """What a trace shows of a job's steps."""

    origin_ns: int  # CLOCK_REALTIME: where picoseconds begin
    first_ns: int  # the same on the trace's lines, which may count from the beginning of the profile
    step_begin_ps: Ints
    step_end_ps: Ints
    operations: list[Operation]
    threads: list[str]
    calls: Calls
    tids: Sequence[int] = ()  # the system's number of each thread, 0 for a line that is none; none where not known

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return len(self.step_begin_ps)

    @property
    def works(self) -> bool:
        """Whether any operation of the model runs in a step."""
        return any(self.operations[place].level == WORKS for place in np.unique(self.calls.operation))

    @property
    def unattributed_ps(self) -> float:
        """What of the steps belongs to no call: with the shared times of all calls it adds up to the steps."""
        return float((self.step_end_ps - self.step_begin_ps).sum() - self.calls.shared_ps.sum())


class Reading(Protocol):
    """The calls of a trace, thread by thread, before they are put together."""

    step_begin: Ints

    def trace(self) -> Trace:
        """All threads together."""


def tensorflow(planes: Mapping[str, Plane]) -> Reading | None:
    """The calls in a trace of TensorFlow; None where it has no host."""
    return _Reading(planes[HOST], begin_of(planes)) if HOST in planes else None


def read_trace(path: Path, reading: Callable[[Mapping[str, Plane]], Reading | None] = tensorflow) -> Trace:
    """Read the calls that lie in steps; a file that is cut, foreign or without steps is a sentence."""
    with Space(path) as space:
        found = reading({plane.name: plane for plane in space.planes()})
    if found is None or not len(found.step_begin):
        raise CastmatesError(f"{path}: this trace has none of the job's steps ('{STEP}').")
    return found.trace()


def begin_of(planes: Mapping[str, Plane]) -> int:
    """When the profile began, in nanoseconds of CLOCK_REALTIME: lines count from there; 0 where they do not."""
    began = planes[TASK].stats.get("profile_start_time") if TASK in planes else None
    return began if isinstance(began, int) else 0


class _Reading:
    """A plane's calls and steps, thread by thread."""

    def __init__(self, plane: Plane, began_ns: int) -> None:
        self.operations: dict[Operation, int] = {}
        self.threads: list[str] = []
        self.tids: list[int] = []
        self._parts: list[tuple[Ints, Ints, Ints]] = []  # of each thread: operation, begin, end
        self._names = {number: name.name for number, name in plane.event_names.items()}
        named = filter(None, map(OPERATION.fullmatch, self._names.values()))
        self._optimizers = optimizer_scopes((one[1], one[2]) for one in named)
        lines = list(plane.lines())
        self._first_ns = min((line.timestamp_ns for line in lines), default=0)
        self.origin_ns = self._first_ns + (began_ns if self._first_ns < began_ns else 0)
        marks = [mark for line in lines for mark in self._read(line)]
        steps = np.array(sorted(marks), np.int64).reshape(-1, 2)
        self.step_begin, self.step_end = steps[:, 0], steps[:, 1]

    def _read(self, line: Line) -> Iterator[tuple[int, int]]:
        """Keep a thread's calls, and yield the steps that it marked."""
        of_kind = {number: self._operation(name, line.name) for number, name in self._names.items()}
        known = Lookup({number: place for number, place in of_kind.items() if place is not None})
        marks = Lookup({number: 0 for number, name in self._names.items() if name == STEP})
        start, kept = 1000 * (line.timestamp_ns - self._first_ns), []
        for events in line.events():
            begin, end = start + events.offset_ps, start + events.offset_ps + events.duration_ps
            at = marks.find(events.kinds) != OUTSIDE
            yield from zip(begin[at].tolist(), end[at].tolist(), strict=True)
            place = known.find(events.kinds)
            there = place != OUTSIDE
            kept.append((place[there], begin[there], end[there]))
        columns = [np.concatenate([part[number] for part in kept] or [np.empty(0, np.int64)]) for number in range(3)]
        self.threads.append(line.name)
        self.tids.append(line.id)
        self._parts.append((columns[0], columns[1], columns[2]))

    def _operation(self, event: str, thread: str) -> int | None:
        """The number of what an event is a call of; None where it is none, or only calls others."""
        found = operation_of(event, thread.startswith(INPUT_THREADS), self._optimizers)
        return None if found is None else self.operations.setdefault(found, len(self.operations))

    def trace(self) -> Trace:
        """All threads together."""
        return assembled(
            Found(
                self.origin_ns,
                self._first_ns,
                self.step_begin,
                self.step_end,
                list(self.operations),
                self.threads,
                self._parts,
                self.tids,
            )
        )


@dataclass(frozen=True)
class Found:
    """What a reader has found in a trace: its steps, and the calls of each thread in any order."""

    origin_ns: int
    first_ns: int
    step_begin: Ints
    step_end: Ints
    operations: list[Operation]
    threads: list[str]
    parts: list[tuple[Ints, Ints, Ints]]  # of each thread: operation, begin, end; emptied when they are put together
    tids: Sequence[int] = ()  # as in a trace


def assembled(found: Found) -> Trace:
    """A trace of what a reader has found: calls that lie in steps, each with its caller and its part of the steps."""
    count = len(found.parts)
    parts = [_nested(found, number, found.parts.pop(0)) for number in range(count)]  # large: each is let go of
    sizes = np.array([len(part[0]) for part in parts], np.int64)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)  # the place of each thread's first call
    columns = [np.concatenate([part.pop(0) for part in parts] or [np.empty(0, np.int64)]) for _ in range(6)]
    operation, thread, begin, end, own_ps, parent = columns
    parent = np.where(parent == NOBODY, NOBODY, parent + first)
    levels = np.array([one.level for one in found.operations], np.int64)[operation]
    divided = shared_by_parts(Threads(begin, end, parent, levels), found.step_begin, found.step_end)
    step = step_of(begin, found.step_begin, found.step_end)
    calls = Calls(operation, thread, step, begin, end, own_ps, divided, parent)
    steps = found.step_begin, found.step_end
    return Trace(found.origin_ns, found.first_ns, *steps, found.operations, found.threads, calls, found.tids)


def _nested(found: Found, thread: int, part: tuple[Ints, Ints, Ints]) -> list[Ints]:
    """A thread's calls that lie in steps, at least with a part."""
    operation, begin, end = part
    before = np.searchsorted(found.step_begin, end, "left") - 1  # the last step that begins before it ends
    inside = (before >= 0) & (found.step_end[np.maximum(before, 0)] > begin) & (end > begin)
    operation, begin, end = operation[inside], begin[inside], end[inside]
    order = in_order(begin, end)
    operation, begin, end = operation[order], begin[order], end[order]
    parent, end = nested(begin, end)
    return [operation, np.full(len(begin), thread, np.int64), begin, end, own(begin, end, parent), parent]


class Lookup:
    """Numbers to places, for whole columns."""

    def __init__(self, known: Mapping[int, int]) -> None:
        self._numbers = np.array(sorted(known), np.int64)
        self._places = np.array([known[number] for number in sorted(known)], np.int64)

    def find(self, numbers: Ints) -> Ints:
        """The place of each number; -1 where it is not known."""
        if not len(self._numbers):
            return np.full(len(numbers), OUTSIDE, np.int64)
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.where(self._numbers[at] == numbers, self._places[at], OUTSIDE)


def step_of(moments: Ints, step_begin: Ints, step_end: Ints) -> Ints:
    """The step in which each moment lies, from 0; -1 outside of steps."""
    step = np.searchsorted(step_begin, moments, "right") - 1
    inside = (step >= 0) & (moments < step_end[np.maximum(step, 0)])
    return np.where(inside, step, OUTSIDE)


@cache
def operation_of(event: str, of_input: bool, optimizers: frozenset[str] = frozenset()) -> Operation | None:
    """What an event is a call of; None where it is none, or only calls others."""
    if event.startswith(EAGER):
        return Operation("", RUNTIME, layer_place("", RUNTIME), BETWEEN)
    if FETCHES.fullmatch(event):
        return Operation(FETCH, FETCH, layer_place(FETCH, FETCH, is_input=True), WAITS)
    found = OPERATION.fullmatch(event)
    if found is None or CONTAINERS.fullmatch(found[2]):
        return None
    name, type_ = found.groups()
    # The input pipeline works beside the model: it counts where a step neither works nor waits.
    return Operation(
        identity(name), type_, layer_place(name, type_, of_input, optimizers), FEEDS if of_input else WORKS
    )


def identity(name: str) -> str:
    """An operation's name without the functions, branches and loops around it: the same in each trace of a graph."""
    parts = [part for part in name.split("/") if not WRAPPING.fullmatch(part)]
    return "/".join(parts) or name
