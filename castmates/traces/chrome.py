"""The calls of operations in the profiled steps of a PyTorch job, from the JSON that its profiler wrote.

Times are microseconds with three decimals, from a moment of CLOCK_REALTIME that the file names.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from castmates.errors import CastmatesError
from castmates.traces.json_events import WHAT, Event, Events
from castmates.traces.memory import Memory
from castmates.traces.nesting import NOBODY
from castmates.traces.operations import Found, Ints, Trace, assembled, step_of
from castmates.traces.torch_calls import Columns, found_in
from castmates.workloads.jobs.tracing import STEP

VERSION = 1  # of the file
OPERATION, MARK = "cpu_op", "user_annotation"  # categories of events
MEMORY = "[memory]"
NS, PS = 1000, 1000  # in a microsecond; in a nanosecond
DEVICES = {0: "cpu", 1: "cuda"}
LARGEST = 2**63
_THREAD = re.compile(r"thread (\d+) \((.*)\)")


@dataclass(frozen=True)
class Given:
    """Memory that was given out or taken back."""

    ts: float
    thread: int
    change: int
    allocator: str


class _Reading:
    """The columns of a trace, some events at a time."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, bool], int] = {}  # name, and whether it is a mark
        self.threads: dict[Any, int] = {}
        self.names: dict[Any, str] = {}
        self.given: list[Given] = []
        self._parts: list[list[Any]] = [[] for _ in range(6)]  # of each column

    def add(self, events: Iterable[Event]) -> None:
        """Keep what counts of some events."""
        rows = []
        for event in events:
            category = event.get("cat")
            if category in (OPERATION, MARK) and event.get("ph") == "X":
                more = event.get("args") or {}
                kind = self.kinds.setdefault((event["name"], category == MARK), len(self.kinds))
                thread = self.threads.setdefault(event["tid"], len(self.threads))
                sequence = more.get("Sequence number", -1)
                forward = more.get("Fwd thread id", 0)
                rows.append((event["ts"], event["dur"], kind, thread, sequence, forward))
            elif event.get("name") == MEMORY:
                self._keep_memory(event)
            elif event.get("ph") == "M" and event.get("name") == "thread_name":
                self.names[event["tid"]] = str(event["args"]["name"])
        for parts, column in zip(self._parts, _packed(rows) if rows else (), strict=False):
            parts.append(column)

    def _keep_memory(self, event: Event) -> None:
        about = event["args"]
        device, number = about.get("Device Type", 0), about.get("Device Id", -1)
        name = DEVICES.get(device, f"device {device}")
        thread = self.threads.setdefault(event["tid"], len(self.threads))
        allocator = name if number < 0 else f"{name}:{number}"
        self.given.append(Given(event["ts"], thread, int(about["Bytes"]), allocator))

    def columns(self) -> Columns:
        """All events, by thread and time, times in nanoseconds."""
        columns: list[Any] = [self._column(number) for number in range(6)]
        begin, end, thread = columns[0], columns[1], columns[3]
        order = np.lexsort((-end, begin, thread))
        del begin, end, thread  # large, as all of these: each is let go of
        for number in range(6):
            columns[number] = columns[number][order]
        begin, end, kind, thread, sequence, of_forward = columns
        tids = [thread if isinstance(thread, int) else 0 for thread in self.threads]
        names = list(self.kinds), self._thread_names(), tids
        return Columns(begin, end, kind, thread, sequence, of_forward, *names)

    def _column(self, number: int) -> Any:  # noqa: ANN401 (an array of numbers or of flags)
        found = np.concatenate(self._parts[number])
        self._parts[number].clear()
        return found

    def _thread_names(self) -> list[str]:
        """The same thread of two launches has one name but for a number behind a slash."""
        named = {thread: _THREAD.fullmatch(self.names.get(thread, "")) for thread in self.threads}
        return [f"{found[2]}/{thread}" if found else f"thread/{thread}" for thread, found in named.items()]


def _packed(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Some events as columns."""
    ts, duration, kind, thread, sequence, forward = zip(*rows, strict=True)
    begin = np.rint(np.array(ts, np.float64) * NS).astype(np.int64)
    end = begin + np.rint(np.array(duration, np.float64) * NS).astype(np.int64)
    numbers = np.array([one if 0 <= one < LARGEST else -1 for one in sequence], np.int64)
    return begin, end, np.array(kind, np.int32), np.array(thread, np.int32), numbers, np.array(forward, np.int64) > 0


def read_json(path: Path) -> tuple[Trace, Memory]:
    """Read the calls and allocations in steps; a file that is cut, foreign, newer or without steps is a sentence."""
    reading, events = _Reading(), Events(path)
    try:
        for some in events:
            reading.add(some)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CastmatesError(f"{path}: this is {WHAT}: its events have another form.") from None
    version = events.facts.get("schemaVersion", VERSION)
    if version != VERSION:
        raise CastmatesError(f"{path}: this trace has the schema {version}, and {VERSION} is what can be read.")
    if not any(mark and name.startswith(STEP) for name, mark in reading.kinds):
        raise CastmatesError(f"{path}: this trace has none of the job's steps ('{STEP}').")
    found, first = _found(reading, int(events.facts.get("baseTimeNanoseconds", 0)))
    trace = assembled(found)
    return trace, _memory(reading.given, trace, first)


def _found(reading: _Reading, base_ns: int) -> tuple[Found, int]:
    """The calls of a trace, and its first moment; the columns that they come from are let go of."""
    columns = reading.columns()
    first = int(columns.begin.min())
    return found_in(columns, first, base_ns + first), first


def _memory(given: list[Given], trace: Trace, first_ns: int) -> Memory:
    """What allocators did; what is in use counts from the beginning of the trace."""
    given = sorted(given, key=lambda one: one.ts)
    at = np.array([round(one.ts * NS) - first_ns for one in given], np.int64) * PS
    change = np.array([one.change for one in given], np.int64)
    allocators = [one.allocator for one in given]
    in_use, peak = np.zeros(len(given), np.int64), np.zeros(len(given), np.int64)
    for name in set(allocators):
        own = np.array([one == name for one in allocators])
        in_use[own] = np.cumsum(change[own])
        peak[own] = np.maximum.accumulate(in_use[own])
    step = step_of(at, trace.step_begin_ps, trace.step_end_ps)
    callers = _callers(trace, np.array([one.thread for one in given], np.int64), at)
    names = [trace.operations[trace.calls.operation[place]].name if place != NOBODY else "" for place in callers]
    return Memory(at, step, change, in_use, peak, allocators, names)


def _callers(trace: Trace, thread: Ints, at: Ints) -> Ints:
    """The call that is open on a thread at a moment, the innermost; -1 for none."""
    calls = trace.calls
    places = np.full(len(at), NOBODY, np.int64)
    for number in np.unique(thread):
        own, asked = np.flatnonzero(calls.thread == number), np.flatnonzero(thread == number)
        before = np.searchsorted(calls.begin_ps[own], at[asked], "right") - 1
        places[asked] = np.where(before >= 0, own[np.maximum(before, 0)] if len(own) else NOBODY, NOBODY)
    while (past := (places != NOBODY) & (calls.end_ps[places] < at)).any():
        places[past] = calls.parent[places[past]]
    return places
