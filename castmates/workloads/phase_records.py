"""What the records of a phases file say: phases, ranges, instants and epochs, one by one."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castmates.workloads.phase_file import (
    LENGTH_AT,
    NOTHING,
    OTHER_THREADS,
    PAYLOAD_BYTES,
    PHASE,
    RECORD,
    TYPE_AT,
    TYPES,
    Reader,
    record_bytes,
)

_HALF = struct.Struct("I")


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of no domain that has ended; the times are CLOCK_MONOTONIC's."""

    name: str  # with those that it lies in: forward/attention
    begin_ns: int
    end_ns: int
    step: int | None = None
    counts: tuple[int | None, ...] = ()  # of the file's counters; None where one was not counted


@dataclass(frozen=True, slots=True)
class Range:
    """One record; the times are CLOCK_MONOTONIC's."""

    type: str  # phase, range, instant, epoch
    path: str  # with the phases that it lies in: forward/attention
    domain: str
    begin_ns: int
    end_ns: int
    step: int | None = None
    epoch: int | None = None
    thread: int | None = None  # that began it, by the system's number
    end_thread: int | None = None
    payload: str = ""

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path.rpartition("/")[2]

    @property
    def depth(self) -> int:
        """How many phases lie around it."""
        around = self.path.split("/")[:-1]
        return len(around) - (around[:1] == [OTHER_THREADS] and not self.domain)


@dataclass(frozen=True)
class Names:
    """What the numbers in records stand for."""

    paths: Sequence[str] = ()
    places: Sequence[tuple[int, int]] = ()  # domain and type
    domains: Sequence[str] = ("",)

    @classmethod
    def of(cls, reader: Reader) -> "Names":
        """Those that a file has by now; there may be more of them a moment later."""
        places, paths = reader.places, reader.names
        count = min(len(places), len(paths))
        return cls(paths[:count], places[:count], reader.domains)

    @property
    def phases(self) -> list[str]:
        """The phases of no domain, which are parts of steps."""
        return [path for path, place in zip(self.paths, self.places, strict=True) if place == (0, PHASE)]


def without_payloads(data: bytes, counters: int) -> tuple[bytes, dict[int, str]]:
    """The records of a chunk without the room for their payloads, and by record the payloads that there are."""
    size, kept = record_bytes(counters), RECORD.size + 8 * counters
    parts, payloads = [], {}
    for number, at in enumerate(range(0, len(data), size)):
        parts.append(data[at : at + kept])
        if length := _HALF.unpack_from(data, at + LENGTH_AT)[0]:
            text = data[at + kept : at + kept + min(length, PAYLOAD_BYTES)]
            payloads[number] = text.decode(errors="replace")
    return b"".join(parts), payloads


def phases_in(heads: bytes, names: Names, counters: int) -> Iterator[Phase]:
    """The phases of no domain among records without payloads."""
    for begin, end, step, _, name, flags, _, _, _, _, _, *counts in _records(heads, counters):
        if flags & 0xFF == PHASE and name < len(names.paths) and not names.places[name][0] and begin <= end:
            known = tuple(None if count == NOTHING else count for count in counts)
            yield Phase(names.paths[name], begin, end, _known(step), known)


def ranges_in(heads: bytes, payloads: dict[int, str], names: Names, counters: int) -> Iterator[Range]:
    """All records; one whose name is not in the table is left out, because it cannot be whole."""
    for number, record in enumerate(_records(heads, counters)):
        begin, end, step, epoch, name, flags, thread, end_thread, *_ = record
        if name >= len(names.paths) or begin > end or flags & 0xFF not in TYPES:
            continue
        domain = names.places[name][0]
        yield Range(
            TYPES[flags & 0xFF],
            names.paths[name],
            names.domains[domain] if domain < len(names.domains) else "",
            begin,
            end,
            _known(step),
            _known(epoch),
            thread or None,
            end_thread or None,
            payloads.get(number, ""),
        )


def type_of(record: bytes) -> int:
    """What a record is of."""
    return int(_HALF.unpack_from(record, TYPE_AT)[0]) & 0xFF


def _records(heads: bytes, counters: int) -> Iterator[tuple[int, ...]]:
    return struct.iter_unpack(f"{RECORD.format}{counters}q", heads)


def _known(number: int) -> int | None:
    return None if number == NOTHING else number
