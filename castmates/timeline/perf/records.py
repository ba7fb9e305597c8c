"""The records of a perf.data file, piece by piece: where each begins, and where its fields lie, for many at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.perf.header import (
    ADDR,
    CALLCHAIN,
    IP,
    PERIOD,
    RAW,
    READ,
    TIMED,
    Event,
    Field,
    Header,
    compressed,
    damaged,
)

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]  # of records, in words
FIXED = (  # of a sample, in this order, a word each
    ("identifier", TIMED["identifier"]),
    ("ip", IP),
    ("tid", TIMED["tid"]),
    ("time", TIMED["time"]),
    ("addr", ADDR),
    ("id", TIMED["id"]),
    ("stream", TIMED["stream"]),
    ("cpu", TIMED["cpu"]),
    ("period", PERIOD),
)
TRAILER = ("tid", "time", "id", "stream", "cpu", "identifier")  # behind all other records, in this order
MOST_ENTRIES = 1 << 13  # of a call chain or a group: a record holds no more
_TIMES, _ID, _GROUP, _LOST = 0b11, 1 << 2, 1 << 3, 1 << 4  # bits of read_format


class Torn(Exception):
    """A record whose parts do not fit into it."""


def sample_places(event: Event) -> dict[str, int]:
    """Where a sample's fields lie, in words from its begin."""
    present = [name for name, bit in FIXED if event.sample_type & bit]
    return {name: 1 + place for place, name in enumerate(present)}


def trailer_places(event: Event) -> dict[str, int]:
    """Where the fields behind any other record lie, in words back from its end."""
    present = [name for name in TRAILER if event.has(name)]
    return {name: len(present) - place for place, name in enumerate(present)}


def id_place(events: Sequence[Event]) -> int | None:
    """Where every sample has the number of its event; None where there is but one event."""
    places = {sample_places(event).get("identifier", sample_places(event).get("id")) for event in events}
    if len(places) == 1:
        return places.pop()
    raise Torn("samples of different events cannot be distinguished")


def raw_places(event: Event, words: Words, begins: Places, ends: Places) -> Places:
    """Where the fields of a tracepoint begin, in units of four bytes; checked to lie inside of each record."""
    at = begins + 1 + len(sample_places(event))
    if event.sample_type & READ:
        times = (event.read_format & _TIMES).bit_count()
        each = 1 + bool(event.read_format & _ID) + bool(event.read_format & _LOST)
        at = at + 1 + times + each * _entries(words, at, ends) if event.read_format & _GROUP else at + times + each
    if event.sample_type & CALLCHAIN:
        at = at + 1 + _entries(words, at, ends)
    _inside(at + 1, ends)
    sizes = words[at].astype(np.int64) & 0xFFFFFFFF
    _inside(at + (sizes + 4 + 7) // 8, ends)
    if event.raw_size and (sizes != event.raw_size).any():
        raise Torn(f"the fields of {event.name} are not described in it, and lie otherwise than assumed")
    needed = max((field.offset + field.size for field in event.fields.values() if field.size <= 8), default=0)
    if len(sizes) and int(sizes.min()) < needed:
        raise Torn("a sample is shorter than its fields")
    return 2 * at + 1


def _entries(words: Words, at: Places, ends: Places) -> Places:
    _inside(at + 1, ends)
    counts = words[at]
    if len(counts) and int(counts.max()) > MOST_ENTRIES:
        raise Torn("a sample has more entries than fit")
    return counts.astype(np.int64)


def _inside(at: Places, ends: Places) -> None:
    if (at > ends).any():
        raise Torn("a sample ends before its fields")


def has_raw(event: Event) -> bool:
    """Whether samples of an event bear a tracepoint's fields, and these are known."""
    return bool(event.sample_type & RAW and event.fields)


def gather(quarters: npt.NDArray[np.uint32], at: Places, field: Field) -> npt.NDArray[np.int64]:
    """The values of a number among a tracepoint's fields."""
    place = at + field.offset // 4
    low = quarters[place].astype(np.int64)
    if field.size == 8:
        return np.asarray(low | quarters[place + 1].astype(np.int64) << 32)
    bits = 8 * field.size
    values = low >> 8 * (field.offset % 4) & (1 << bits) - 1
    return np.asarray(values - ((values >> (bits - 1)) << bits)) if field.signed else values


def gather_text(quarters: npt.NDArray[np.uint32], at: Places, field: Field) -> list[str]:
    """The values of a text of fixed length."""
    parts = [quarters[at + field.offset // 4 + step] for step in range(field.size // 4)]
    rows = np.stack(parts, axis=1).tobytes()
    return [
        rows[begin : begin + field.size].split(b"\0")[0].decode(errors="replace")
        for begin in range(0, len(rows), field.size)
    ]


PIECE = 1 << 25  # bytes
AUXTRACE, COMPRESSED, COMPRESSED2 = 71, 81, 83  # types that perf itself writes
_BROKEN = 1 << 60
_INCOMPLETE = "its last record is incomplete"


class Piece(NamedTuple):
    """Whole records of a file."""

    words: Words
    quarters: npt.NDArray[np.uint32]  # the same in units of four bytes
    begins: Places
    ends: Places
    types: npt.NDArray[np.uint32]
    misc: npt.NDArray[np.uint16]


def pieces(header: Header, stream: BinaryIO) -> Iterator[Piece]:
    """Yield the records, which follow each other without gaps; each has its size in its head."""
    at, end = header.begin, header.begin + header.size
    while at < end:
        stream.seek(at)
        data = stream.read(min(PIECE, end - at) // 8 * 8)
        piece, skipped = _piece(header, data, at)
        if not len(piece.begins):
            raise damaged(header.file, _INCOMPLETE)
        yield piece
        at += 8 * int(piece.ends[-1]) + skipped
    if at > end:
        raise damaged(header.file, _INCOMPLETE)


def _piece(header: Header, data: bytes, at: int) -> tuple[Piece, int]:
    """The whole records at the begin of some bytes; and how many bytes behind them are no records."""
    begins, end = _walk(memoryview(data).cast("H"))
    edges = np.array([*begins, end], np.int64)
    if end > len(data) // 2:
        edges = edges[:-1]  # the last one goes on behind these bytes
    words = np.frombuffer(data, "<u8")
    heads = words[edges[:-1] // 4]
    types = (heads & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    aux = np.flatnonzero(types == AUXTRACE)[:1]
    if len(aux):
        edges, types, heads = edges[: aux[0] + 2], types[: aux[0] + 1], heads[: aux[0] + 1]
    elif end >= _BROKEN:
        raise damaged(header.file, f"the record at byte {at + 2 * begins[-1]} has no size")
    if (edges % 4).any():
        raise damaged(header.file, f"a record behind byte {at} has an impossible size")
    if np.isin(types, (COMPRESSED, COMPRESSED2)).any():
        raise compressed(header.file)
    places = edges // 4
    misc = (heads >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.uint16)
    piece = Piece(words, np.frombuffer(data, "<u4"), places[:-1], places[1:], types, misc)
    return piece, _behind(piece) if len(aux) else 0


def _walk(halves: memoryview) -> tuple[list[int], int]:
    """Where records begin, in units of two bytes, and where the last one ends: this runs once for each record."""
    at, last, begins = 0, len(halves) - 3, list[int]()
    add = begins.append
    while at < last:
        add(at)
        at += (halves[at + 3] >> 1) or _BROKEN
    return begins, at


def _behind(piece: Piece) -> int:
    """How many bytes of a hardware trace follow the last record, as that record has it."""
    begin, end = int(piece.begins[-1]), int(piece.ends[-1])
    return int(piece.words[begin + 1]) if end > begin + 1 else 0


# What is noted while records are read piece by piece: tasks, losses, and until when all of it is there.

_NAME = 16  # bytes of a thread's name


@dataclass
class Tasks:
    """The tasks of a recording, by the numbers that perf saw."""

    processes: dict[int, int] = field(default_factory=dict)  # thread -> its process
    names: dict[int, str] = field(default_factory=dict)  # thread -> its last name
    comms: dict[int, str] = field(default_factory=dict)  # the same, as the scheduler's own events have it
    irqs: dict[int, str] = field(default_factory=dict)  # names of interrupts
    births: dict[int, int] = field(default_factory=dict)  # thread -> when it was made
    ends: dict[int, int] = field(default_factory=dict)  # thread -> when it ended
    parents: dict[int, int] = field(default_factory=dict)  # process -> the process that made it

    def seen(self, who: npt.NDArray[np.uint64]) -> None:
        """Note whose threads these are; each word has a process in its lower half and a thread in its upper one."""
        for word in pd.unique(who).tolist():
            self.processes.setdefault(word >> 32, word & 0xFFFFFFFF)

    def take(self, piece: Piece, rows: npt.NDArray[Any], is_name: bool, is_birth: bool) -> None:
        """Take records of threads' names, begins and ends; there are few, so one after the other."""
        for row in rows.tolist():
            begin, end = int(piece.begins[row]), int(piece.ends[row])
            if is_name:
                self._name(piece, begin, end)
            elif end >= begin + 4:
                self._task(piece, begin, is_birth)

    def end(self, tid: int) -> int | None:
        """When a thread ended; None where it did not, or another one was given its number since."""
        end = self.ends.get(tid)
        return None if end is None or end < self.births.get(tid, 0) else end

    def name(self, tid: int) -> str:
        """A thread's name, as far as it is known."""
        return self.names.get(tid) or self.comms.get(tid, "")

    def _name(self, piece: Piece, begin: int, end: int) -> None:
        if end < begin + 3:
            return
        word = int(piece.words[begin + 1])
        text = piece.words[begin + 2 : min(end, begin + 2 + _NAME // 8)].tobytes()
        self.names[word >> 32] = text.split(b"\0")[0].decode(errors="replace")
        self.processes.setdefault(word >> 32, word & 0xFFFFFFFF)

    def _task(self, piece: Piece, begin: int, is_birth: bool) -> None:
        """A record of pid, ppid, tid, ptid and a time."""
        parents, threads, time = (int(word) for word in piece.words[begin + 1 : begin + 4])
        pid, parent, tid, by = parents & 0xFFFFFFFF, parents >> 32, threads & 0xFFFFFFFF, threads >> 32
        self.processes[tid] = pid
        if not is_birth:
            self.ends[tid] = max(time, self.ends.get(tid, 0))
            if pid != parent:  # its birth may lie before the recording
                self.parents.setdefault(pid, parent)
            return
        if time:  # perf notes the threads that it finds with a time of 0
            self.births[tid] = min(time, self.births.get(tid, time))
        if pid != parent:
            self.parents[pid] = parent
        if tid not in self.names and (name := self.name(by)):
            self.names[tid] = name


Array = npt.NDArray[Any]


class Latest:
    """The last record of each CPU: since then records of its buffer were lost, where some were."""

    def __init__(self) -> None:
        self._before = np.zeros(1, np.int64)  # the latest time by CPU + 1, of the pieces that are done
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, rows: Array, cpus: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, CPUs (-1: unknown) and times."""
        self._parts.append((rows, cpus, times))

    def since(self, rows: Array, cpus: Array) -> Array:
        """When the last record before each of these places was made on the same CPU; 0 where there was none."""
        found = np.where(cpus + 1 < len(self._before), self._before[np.minimum(cpus + 1, len(self._before) - 1)], 0)
        if not self._parts:
            return found
        all_rows, all_cpus, times = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((all_rows, all_cpus))
        keys = (all_cpus[order] + 1) << 32 | all_rows[order]
        places = np.searchsorted(keys, (cpus + 1) << 32 | rows) - 1
        same = (places >= 0) & (all_cpus[order][places] == cpus)
        return np.where(same, times[order][places], found)

    @property
    def least(self) -> int:
        """The time until which every CPU that shows up has records, of the pieces that are done; 0 for none."""
        known = self._before[self._before > 0]
        return int(known.min()) if len(known) else 0

    def end_piece(self) -> None:
        """Go on to the next piece."""
        for _, cpus, times in self._parts:
            if len(cpus) and (most := int(cpus.max()) + 2) > len(self._before):
                self._before = np.append(self._before, np.zeros(min(most, 1 << 20) - len(self._before), np.int64))
            known = cpus + 1 < len(self._before)
            np.maximum.at(self._before, cpus[known] + 1, times[known])
        self._parts.clear()


FINISHED_ROUND = 68


class Sure:
    """Until when a recording has everything, where perf ended by itself: what lay in the buffers of CPUs may be gone.

    perf marks each time that it has emptied the buffers of all CPUs. What came later than the last record before the
    last mark but one may still have lain in a buffer; what came earlier was read.
    """

    def __init__(self) -> None:
        self._latest = 0
        self._marks: list[int] = []  # the last two
        self._parts: list[tuple[Array, Array]] = []

    def add(self, rows: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, and times."""
        self._parts.append((rows, times))

    def end_piece(self, types: Array) -> None:
        """Go on to the next piece; `types` are those of all records of this one."""
        marks = np.flatnonzero(types == FINISHED_ROUND)
        empty = np.empty(0, np.int64)
        rows = np.concatenate([empty, *(rows for rows, _ in self._parts)])
        times = np.concatenate([empty, *(times for _, times in self._parts)])
        order = np.argsort(rows, kind="stable")
        latest = np.maximum.accumulate(np.append(self._latest, times[order]))
        at_marks = latest[np.searchsorted(rows[order], marks)]
        self._marks = [*self._marks, *at_marks[-2:].tolist()][-2:]
        self._latest = int(latest[-1])
        self._parts.clear()

    @property
    def until(self) -> int:
        """The time until which everything was read; 0 where perf has marked too little."""
        return int(self._marks[0]) if len(self._marks) > 1 else 0
