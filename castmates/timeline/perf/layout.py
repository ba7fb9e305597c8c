"""Where each field of a record lies: found for many records at once, in arrays of words."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.formats import Field
from castmates.timeline.perf.header import ADDR, CALLCHAIN, IP, PERIOD, RAW, READ, TIMED, Event

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
