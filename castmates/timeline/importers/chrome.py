"""Reads traces in Chrome's JSON, which PyTorch's profiler, TensorBoard and many other programs write.

Times are microseconds; PyTorch's file has the moment of CLOCK_REALTIME from which they count.
"""

import math
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from castmates.errors import CastmatesError
from castmates.timeline.importers.kernel import Account, record
from castmates.timeline.importers.lines import Columns, Progress, Words
from castmates.timeline.model import Making, Timeline, categories
from castmates.traces.json_events import Event, Events
from castmates.traces.nesting import fitted, pairs
from castmates.traces.torch_work import NO_TENSOR

SOURCE, WHAT = "chrome", "no trace in Chrome's JSON"
NS = 1000  # in a microsecond
BASE = "baseTimeNanoseconds"
COMPLETE, BEGIN, END, INSTANT, COUNTER = range(5)
PHASES = {"X": COMPLETE, "B": BEGIN, "E": END, "i": INSTANT, "I": INSTANT, "R": INSTANT, "C": COUNTER}
WORDS = {"b": "asynchronous begins", "e": "asynchronous ends", "n": "asynchronous instants", "s": "beginnings of flows"}
WORDS |= {"t": "steps of flows", "f": "ends of flows", "M": "metadata of no thread"}
KINDS = {  # of PyTorch's categories
    "cpu_op": "operation",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
}
MEMORY, DEVICES = "[memory]", {0: "cpu", 1: "cuda"}  # PyTorch's moments at which memory is given out or taken back
LARGEST = 1 << 53  # above it: PyTorch's word for no number
_STEP = re.compile(r"castmates_step|ProfilerStep#")
_LOOKS = re.compile(rb'"traceEvents"\s*:\s*\[|^\s*\[\s*\{[^{}]*"ph"\s*:')


def recognises(beginning: bytes) -> bool:
    """Whether a file, perhaps packed by gzip, begins with a list of events."""
    if beginning.startswith(b"\x1f\x8b"):
        try:
            beginning = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(beginning)
        except zlib.error:
            return False
    return _LOOKS.search(beginning) is not None


def read(path: Path, progress: Progress) -> Timeline:
    """Read a file."""
    reading = _Reading()
    events = Events(path, WHAT)
    try:
        for some in events:
            reading.add(some)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CastmatesError(f"{path}: this is {WHAT}: its events have another form.") from None
    if not reading.account.read:
        raise CastmatesError(f"{path}: there are no events in this trace.")
    size = path.stat().st_size
    progress(size)
    base = events.facts.get(BASE)
    clock = "CLOCK_REALTIME" if isinstance(base, int) else "the trace's own, in microseconds"
    making = Making()
    reading.fill(making, base if isinstance(base, int) else 0)
    making.about = record(path, SOURCE, reading.account, clock, size)
    return making.made()


class _Row(NamedTuple):
    """An event, or one number of a counter."""

    t: int
    length: int
    phase: int
    thread: int
    name: int
    kind: int
    value: float  # of a counter; of an operation, the number that it shares with its gradient
    detail: int = 0  # of an operation: what it was given


class _Reading:
    """The events of a trace, some at a time."""

    def __init__(self) -> None:
        self.account = Account()
        self._words, self._kinds = Words(), Words()
        self._threads: dict[tuple[str, str], int] = {}
        self._names: dict[tuple[str, str], str] = {}  # of threads, and of processes, whose thread is ""
        self._rows = Columns(
            t=np.int64, length=np.int64, phase=np.int8, thread=np.int32, name=np.int32, kind=np.int32, value=np.float64,
            detail=np.int32,
        )  # fmt: skip
        self._words.number("")  # 0: no detail

    def add(self, events: Iterable[Event]) -> None:
        """Take in some events."""
        rows: list[_Row] = []
        for event in events:
            self.account.read += 1
            phase = event.get("ph")
            if phase == "M":
                self._name(event)
            elif phase in PHASES:
                rows.extend(self._row(event, PHASES[phase]))
            else:
                self.account.leave(WORDS.get(str(phase), f"events of the phase '{phase}'"))
        if rows:
            self._rows.add(**dict(zip(_Row._fields, map(np.array, zip(*rows, strict=True)), strict=True)))

    def _name(self, event: Event) -> None:
        process, thread = str(event.get("pid", "")), str(event.get("tid", ""))
        if event.get("name") in ("thread_name", "process_name"):
            key = (process, thread if event["name"] == "thread_name" else "")
            self._names[key] = str(event["args"]["name"])
            self.account.use("names")
        else:
            self.account.leave(f"metadata ({event.get('name')})")

    def _row(self, event: Event, phase: int) -> Iterable[_Row]:
        """A row for an event; a counter has one for each of its numbers."""
        begin, lasting = float(event["ts"]), float(event.get("dur", 0))
        if not (math.isfinite(begin) and math.isfinite(lasting) and lasting >= 0):
            self.account.leave("events whose time is no number, or that end before they begin")
            return
        thread = self._threads.setdefault((str(event.get("pid", "")), str(event.get("tid", ""))), len(self._threads))
        t, length = round(begin * NS), round(lasting * NS)
        name = str(event.get("name", ""))
        if phase == COUNTER:
            values = {key: each for key, each in (event.get("args") or {}).items() if isinstance(each, int | float)}
            self.account.use("counters") if values else self.account.leave("counters without a number")
            for key, value in values.items():
                label = name if key in ("value", name) else f"{name} {key}"
                yield _Row(t, 0, phase, thread, self._words.number(label), 0, float(value))
            return
        given = event.get("args") or {}
        if name == MEMORY and isinstance(allocated := given.get("Total Allocated"), int):
            self.account.use("changes of memory")
            label = f"allocated_bytes {DEVICES.get(given.get('Device Type', -1), 'device')}"
            yield _Row(t, 0, COUNTER, thread, self._words.number(label), 0, float(allocated))
            return
        self.account.use({COMPLETE: "complete events", INSTANT: "instants", BEGIN: "begins", END: "ends"}[phase])
        category = str(event.get("cat", ""))
        kind = "step" if _STEP.match(name) else KINDS.get(category, "range")
        number, shapes = given.get("Sequence number"), given.get("Input Dims") or ()
        types = given.get("Input type") or [""] * len(shapes)
        taken = "; ".join(
            f"{type_}[{','.join(map(str, shape))}]"
            for type_, shape in zip(types, shapes, strict=False)
            if type_ not in NO_TENSOR
        )
        value = float(number) if isinstance(number, int) and 0 <= number < LARGEST else math.nan
        numbers = self._words.number(name), self._kinds.number(kind), value, self._words.number(taken)
        yield _Row(t, length, phase, thread, *numbers)

    def fill(self, making: Making, base_ns: int) -> None:
        """Add everything to a timeline."""
        rows = dict(self._rows.whole())
        rows["t"] = rows["t"] + base_ns
        tracks = np.array(self._tracks(making) or [0], np.int64)
        rows["track"] = tracks[rows["thread"]]
        words = self._words.known()
        self._spans(making, rows, words)
        for phase, kind in ((INSTANT, "annotation"), (COUNTER, "")):
            own = {name: column[rows["phase"] == phase] for name, column in rows.items()}
            common = {"t_ns": own["t"], "track": own["track"], "name": categories(own["name"], words), "source": SOURCE}
            if kind:
                making.instants(kind=kind, **common)
            else:
                making.samples(value=own["value"], **common)

    def _spans(self, making: Making, rows: Mapping[str, Any], words: list[str]) -> None:
        """Complete events, and begins with their ends."""
        marks = np.flatnonzero(np.isin(rows["phase"], (BEGIN, END)))
        marks = marks[np.argsort(rows["t"][marks], kind="stable")]
        begin, end = pairs(rows["track"][marks], rows["phase"][marks] == BEGIN)
        for phase, word, other, found in ((BEGIN, "begins", "end", begin), (END, "ends", "begin", end)):
            self.account.leave_used(word, f"without {other}", int((rows["phase"] == phase).sum()) - len(found))
        whole = np.flatnonzero(rows["phase"] == COMPLETE)
        at = np.r_[whole, marks[begin]]
        t0, t1 = rows["t"][at], np.r_[rows["t"][whole] + rows["length"][whole], rows["t"][marks[end]]]
        kinds = self._kinds.known()
        for number, kind in enumerate(kinds):
            own = rows["kind"][at] == number
            depth, until, _ = fitted(rows["track"][at][own], t0[own], np.maximum(t1[own], t0[own]))
            making.intervals(
                t0_ns=t0[own],
                t1_ns=until,
                track=rows["track"][at][own],
                kind=kind,
                name=categories(rows["name"][at][own], words),
                depth=depth,
                value=rows["value"][at][own],
                detail=categories(rows["detail"][at][own], words),
                source=SOURCE,
            )

    def _tracks(self, making: Making) -> list[int]:
        """A track for each thread, below one of its process."""
        processes: dict[str, int] = {}
        tracks = []
        for process, thread in self._threads:
            if process not in processes:
                named = self._names.get((process, "")) or f"process {process}"
                number = int(process) if process.isdigit() else None
                processes[process] = making.track("process", named, pid=number)
            named = self._names.get((process, thread)) or f"thread {thread}"
            numbers = {key: int(each) for key, each in (("pid", process), ("tid", thread)) if each.isdigit()}
            tracks.append(making.track("thread", named, processes[process], **numbers))
        return tracks
