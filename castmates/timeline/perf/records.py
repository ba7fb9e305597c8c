"""The records of a perf.data file, piece by piece: where each begins, and where its fields lie, for many at once."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

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
