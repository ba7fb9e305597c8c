"""Reads what perf recorded: every record once, decoded in groups of one event, in the order of the file."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.errors import CastmatesError
from castmates.timeline.perf.header import SAMPLE_ID_ALL, Event, Header, damaged, read_header
from castmates.timeline.perf.records import (
    Latest,
    Piece,
    Places,
    Sure,
    Tasks,
    Torn,
    gather,
    gather_text,
    has_raw,
    id_place,
    pieces,
    raw_places,
    sample_places,
    trailer_places,
)
from castmates.timeline.states import joined, rows_of

Array = npt.NDArray[Any]
Table = Array  # of named columns
LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, LOST_SAMPLES, SWITCH, SWITCH_WIDE = 2, 3, 4, 5, 7, 9, 13, 14, 15
OUT, PREEMPTED = 1 << 13, 1 << 14  # misc of a switch
KERNEL, USER = 1, 2  # misc of a sample: where the processor was
_MODE = 7
# The fields that are needed of each tracepoint, and what holds them.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "sched:sched_switch": {"prev_pid": "i4", "prev_state": "i4", "next_pid": "i4"},
    "sched:sched_waking": {"common_flags": "u1", "pid": "i4", "target_cpu": "i4"},
    "sched:sched_wakeup": {"common_flags": "u1", "pid": "i4", "target_cpu": "i4"},
    "sched:sched_wakeup_new": {"common_flags": "u1", "pid": "i4", "target_cpu": "i4"},
    "raw_syscalls:sys_enter": {"id": "i4"},
    "raw_syscalls:sys_exit": {"id": "i4", "ret": "i8"},
    "irq:irq_handler_entry": {"irq": "i4"},
    "irq:irq_handler_exit": {"irq": "i4"},
    "irq:softirq_entry": {"vec": "i4"},
    "irq:softirq_exit": {"vec": "i4"},
}
COMMON = {"time": "i8", "tid": "i4", "cpu": "i4", "mode": "u1"}
SWITCHES = {"time": "i8", "tid": "i4", "cpu": "i4", "out": "?", "preempted": "?", "other": "i4"}
LOSSES = {"time": "i8", "cpu": "i4", "count": "i8", "since": "i8"}


@dataclass
class Recording:
    """All that a file holds of threads, by event; CPUs that are not known are -1."""

    header: Header
    samples: dict[str, Table] = field(default_factory=dict)
    switches: Table = field(default_factory=lambda: np.empty(0))
    losses: Table = field(
        default_factory=lambda: np.empty(0)
    )  # ranges of time in which records of a CPU's buffer were lost
    lost_samples: int = 0  # as the kernel counted them by event, without when
    tasks: Tasks = field(default_factory=Tasks)
    counts: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)  # by event, where the file shows which
    first_ns: int = 0
    last_ns: int = 0
    sure_ns: int = 0  # until when everything is in it, even if perf did not end in good order; 0: not known


class _Parts:
    """A table that grows piece by piece."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kind = np.dtype(list(kinds.items()), align=True)
        self._parts: list[Table] = []

    def add(self, **columns: Array) -> None:
        self._parts.append(rows_of(self._kind, **{name: columns[name] for name in self._kind.names or ()}))

    def whole(self) -> Table:
        return joined([np.empty(0, self._kind), *self._parts])


def read(file: Path) -> Recording:
    """Read a file."""
    header = read_header(file)
    try:
        reader = _Reader(header)
        with file.open("rb") as stream:
            for piece in pieces(header, stream):
                reader.take(piece)
    except OSError as problem:
        raise CastmatesError(f"{file}: the recording of perf cannot be read ({problem.strerror})") from None
    except (Torn, IndexError) as problem:
        raise damaged(file, str(problem) if isinstance(problem, Torn) else "a record ends within its fields") from None
    return reader.whole()


class _Reader:
    def __init__(self, header: Header) -> None:
        self._recording = Recording(header)
        self._events = header.events
        self._id_place = id_place(header.events) if len(header.events) > 1 else None
        numbers = [(each, place) for place, event in enumerate(header.events) for each in event.ids]
        order = sorted(numbers)
        self._ids = np.array([each for each, _ in order], np.uint64)
        self._event_of = np.array([place for _, place in order], np.int64)
        self._samples = [_Parts({**COMMON, **FIELDS.get(event.name, {})}) for event in header.events]
        self._switches, self._losses = _Parts(SWITCHES), _Parts(LOSSES)
        self._latest, self._sure = Latest(), Sure()
        self._ends: list[tuple[int, int]] = []

    def take(self, piece: Piece) -> None:
        """Take the records of a piece."""
        samples = np.flatnonzero(piece.types == SAMPLE)
        for place, chosen in self._by_event(piece, samples, self._id_place):
            self._sample(piece, self._events[place], self._samples[place], chosen)
        others = np.flatnonzero(piece.types != SAMPLE)
        kinds = np.unique(piece.types[others]).tolist()
        for kind in sorted(kinds, key=lambda kind: kind == LOST):  # last, because they need what came before them
            chosen = others[piece.types[others] == kind]
            if kind in (SWITCH, SWITCH_WIDE):
                self._switch(piece, chosen, kind)
            elif kind in (FORK, EXIT, COMM):
                self._recording.tasks.take(piece, chosen, kind == COMM, kind == FORK)
            elif kind in (LOST, LOST_SAMPLES, THROTTLE):
                self._lost(piece, chosen, kind)
        self._latest.end_piece()
        self._sure.end_piece(piece.types)

    def whole(self) -> Recording:
        """What was taken."""
        recording = self._recording
        for event, parts in zip(self._events, self._samples, strict=True):
            table = parts.whole()
            if (known := recording.samples.get(event.name)) is not None:  # the same event once for each control group
                table = joined([known, table])
            recording.samples[event.name] = table
            recording.counts[event.name] += len(table) - (0 if known is None else len(known))
        recording.switches, recording.losses = self._switches.whole(), self._losses.whole()
        recording.counts["switches"] = len(recording.switches)
        if self._ends:
            recording.first_ns = min(first for first, _ in self._ends)
            recording.last_ns = max(last for _, last in self._ends)
            recording.sure_ns = self._sure.until or self._latest.least
        return recording

    def _by_event(self, piece: Piece, chosen: Array, place: int | None) -> Iterable[tuple[int, Array]]:
        """Divide samples among events, by the number that each bears."""
        if place is None or not len(chosen):
            return [(0, chosen)] if len(chosen) else []
        at = piece.begins[chosen] + place
        if (at >= piece.ends[chosen]).any():
            raise Torn("a sample is too short")
        numbers = piece.words[at]
        found = np.minimum(np.searchsorted(self._ids, numbers), max(len(self._ids) - 1, 0))
        if not len(self._ids) or (self._ids[found] != numbers).any():
            raise Torn("a sample belongs to none of its events")
        which = self._event_of[found]
        return [(each, chosen[which == each]) for each in np.unique(which).tolist()]

    def _sample(self, piece: Piece, event: Event, parts: _Parts, chosen: Array) -> None:
        begins, ends = piece.begins[chosen], piece.ends[chosen]
        places = sample_places(event)
        if not {"tid", "time"} <= places.keys():
            raise CastmatesError(
                f"{self._recording.header.file}: {event.name} was recorded without times; use perf record -T"
            )
        if len(chosen) and int((ends - begins).min()) <= max(places.values()):
            raise Torn("a sample is too short")
        columns = _common(piece, begins, places) | {"mode": piece.misc[chosen] & _MODE}
        self._span(chosen, columns)
        self._recording.tasks.seen(piece.words[begins + places["tid"]])
        needed = FIELDS.get(event.name, {})
        if needed:
            columns |= self._raw(piece, event, needed, begins, ends)
        parts.add(**columns)

    def _raw(
        self, piece: Piece, event: Event, needed: Mapping[str, str], begins: Places, ends: Places
    ) -> dict[str, Array]:
        """The fields of a tracepoint, and the names of who is switched to."""
        if not has_raw(event) or set(needed) - set(event.fields):
            file = self._recording.header.file
            raise CastmatesError(
                f"{file}: the fields of {event.name} are not described in it; record as root or with -R"
            )
        at = raw_places(event, piece.words, begins, ends)
        columns = {name: gather(piece.quarters, at, event.fields[name]) for name in needed}
        if event.name == "sched:sched_switch":
            for pid, comm in (("next_pid", "next_comm"), ("prev_pid", "prev_comm")):
                self._names(piece, event, at, columns[pid], comm)
        elif event.name == "irq:irq_handler_entry":
            self._irq_names(piece, event, at, columns["irq"])
        return columns

    def _names(self, piece: Piece, event: Event, at: Places, pids: Array, comm: str) -> None:
        """The names of threads that are not known yet, from where each is first seen."""
        known = self._recording.tasks.comms
        new, first = np.unique(pids, return_index=True)
        wanted = [place for pid, place in zip(new.tolist(), first.tolist(), strict=True) if pid not in known]
        if wanted and comm in event.fields:
            texts = gather_text(piece.quarters, at[wanted], event.fields[comm])
            known.update(zip(pids[wanted].tolist(), texts, strict=True))

    def _irq_names(self, piece: Piece, event: Event, at: Places, numbers: Array) -> None:
        """The names of interrupts: texts of any length, whose place in the record is itself a field."""
        for number, place in zip(*(each.tolist() for each in np.unique(numbers, return_index=True)), strict=True):
            if number in self._recording.tasks.irqs or "name" not in event.fields:
                continue
            begin = 4 * int(at[place])
            where = int(gather(piece.quarters, at[place : place + 1], event.fields["name"])[0])
            text = piece.quarters.tobytes()[begin + (where & 0xFFFF) : begin + (where & 0xFFFF) + (where >> 16)]
            self._recording.tasks.irqs[number] = text.split(b"\0")[0].decode(errors="replace")

    def _switch(self, piece: Piece, chosen: Array, kind: int) -> None:
        """Switches, of threads that are followed or of all on a CPU."""
        for event, rows in self._by_trailer(piece, chosen):
            columns = _common(piece, piece.ends[rows], _back(event))
            self._span(rows, columns)
            misc = piece.misc[rows]
            at = piece.begins[rows] + 1
            other = piece.words[at] >> np.uint64(32) if kind == SWITCH_WIDE else np.full(len(rows), -1)
            self._recording.tasks.seen(piece.words[piece.ends[rows] + _back(event)["tid"]])
            is_out = misc & OUT != 0
            self._switches.add(**columns, out=is_out, preempted=misc & PREEMPTED != 0, other=other.astype(np.int64))

    def _lost(self, piece: Piece, chosen: Array, kind: int) -> None:
        """What the kernel could not record; each loss lies behind the record before it in its CPU's buffer."""
        if kind == THROTTLE:
            numbers = piece.words[piece.begins[chosen] + 2]
            places = np.minimum(np.searchsorted(self._ids, numbers), max(len(self._ids) - 1, 0))
            for place in places[self._ids[places] == numbers] if len(self._ids) else ():
                self._recording.throttled[self._events[self._event_of[place]].name] += 1
            self._recording.counts["throttled"] += len(chosen)
            return
        for event, rows in self._by_trailer(piece, chosen):
            at = piece.begins[rows] + (2 if kind == LOST else 1)
            if kind == LOST_SAMPLES:
                self._recording.lost_samples += int(piece.words[at].sum())
                continue
            columns = _common(piece, piece.ends[rows], _back(event))
            since = np.minimum(self._latest.since(rows, columns["cpu"]), columns["time"])
            self._losses.add(**columns, count=piece.words[at].astype(np.int64), since=since)

    def _by_trailer(self, piece: Piece, chosen: Array) -> Iterable[tuple[Event, Array]]:
        """Divide other records among the events whose buffer they came through."""
        first = self._events[0]
        if not first.flags & SAMPLE_ID_ALL:
            return []
        if not all(event.has("identifier") for event in self._events):
            kept = [(0, chosen)]
        else:
            numbers = piece.words[piece.ends[chosen] - 1]
            found = np.minimum(np.searchsorted(self._ids, numbers), max(len(self._ids) - 1, 0))
            is_known = self._ids[found] == numbers if len(self._ids) else np.zeros(len(chosen), bool)
            which = np.where(is_known, self._event_of[found] if len(self._ids) else 0, 0)
            kept = [(each, chosen[which == each]) for each in np.unique(which).tolist()]
        return [(self._events[each], self._checked(piece, self._events[each], rows)) for each, rows in kept]

    def _checked(self, piece: Piece, event: Event, rows: Array) -> Array:
        places = trailer_places(event)
        if not {"tid", "time"} <= places.keys():
            raise CastmatesError(
                f"{self._recording.header.file}: switches were recorded without times; use perf record -T"
            )
        if len(rows) and int((piece.ends[rows] - piece.begins[rows]).min()) <= max(places.values()):
            raise Torn("a record is too short")
        return rows

    def _span(self, rows: Array, columns: Mapping[str, Array]) -> None:
        if len(rows):
            self._ends.append((int(columns["time"].min()), int(columns["time"].max())))
            self._latest.add(rows, columns["cpu"], columns["time"])
            self._sure.add(rows, columns["time"])


def _back(event: Event) -> dict[str, int]:
    return {name: -place for name, place in trailer_places(event).items()}


def _common(piece: Piece, at: Places, places: Mapping[str, int]) -> dict[str, Array]:
    """Time, thread and CPU, each so many words from `at`."""
    who = piece.words[at + places["tid"]]
    cpu = piece.words[at + places["cpu"]] & np.uint64(0xFFFFFFFF) if "cpu" in places else np.full(len(at), -1)
    return {
        "time": piece.words[at + places["time"]].astype(np.int64),
        "tid": (who >> np.uint64(32)).astype(np.int64),
        "cpu": cpu.astype(np.int64),
    }
