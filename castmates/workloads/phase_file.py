"""The phases file: a ring of records in shared memory (standard library only, Python 3.10 on).

Its layout is in phase_layout.py; docs/phases.md has it for any language, with the rules.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castmates.workloads.phase_layout import (
    CAPACITY,
    COUNTER_BYTES,
    COUNTER_SLOT,
    COUNTER_TABLE,
    CUT_AT,
    DOMAIN_BYTES,
    DOMAIN_SLOT,
    DOMAIN_TABLE,
    DOMAINS_AT,
    DROPPED_AT,
    FIRST,
    HEAD_AT,
    HEADER,
    LAYOUTS,
    MAGIC,
    MOST_COUNTERS,
    MOST_DOMAINS,
    NAMES_AT,
    NOTHING,
    OPEN_AT,
    SECOND,
    STATUS_AT,
    Layout,
)

VARIABLE = "CASTMATES_PHASES"  # a file of version 1
SECOND_VARIABLE = "CASTMATES_PHASES_2"  # one of version 2, which who knows it prefers
COUNTERS_VARIABLE = "CASTMATES_PHASE_COUNTERS"
METHOD_VARIABLE = "CASTMATES_PHASE_COUNTER_METHOD"  # perf, which it is without the variable, or papi
OTHER_THREADS = "threads"  # what threads other than the first do lies in this phase

# How a counter fares.
NOT_TRIED, COUNTED, NOT_SUPPORTED, NOT_COUNTED = range(4)
Status = Literal["counted", "not supported", "not counted"]
STATUS: tuple[Status, ...] = ("not counted", "counted", "not supported", "not counted")
USER_ONLY, SOME_THREADS, BY_PAPI = 1, 2, 4  # flags of what its numbers lack, and who counted
LACKS = {USER_ONLY: "user mode only", SOME_THREADS: "threads may be missing", BY_PAPI: "counted by PAPI"}


class PhasesError(ValueError):
    """A phases file that cannot be made, read or written; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase that has ended; the times are CLOCK_MONOTONIC's."""

    name: str  # with those that it lies in: forward/attention
    begin_ns: int
    end_ns: int
    step: int | None = None
    counts: tuple[int | None, ...] = ()  # of the file's counters; None where one was not counted


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records as they lie in the file, where to go on, and how many the reader came too late for."""

    data: bytes
    head: int
    lost: int


def create(
    path: str | os.PathLike[str], counters: Sequence[str] = (), capacity: int = CAPACITY, version: int = FIRST.version
) -> None:
    """Make an empty phases file for one process, with these counters to be read at the edges of its phases."""
    layout = LAYOUTS[version]
    if not _is_capacity(capacity):
        raise PhasesError(f"The capacity of a phases file must be a power of two from 2 on, but is {capacity}.")
    if len(counters) > MOST_COUNTERS:
        raise PhasesError(f"Phases can have {MOST_COUNTERS} counters, but {len(counters)} are wanted: name fewer.")
    if len(set(counters)) < len(counters):
        raise PhasesError(f"Phases can have each counter once, but {', '.join(counters)} names one twice.")
    table = b"".join(_slot(name, COUNTER_BYTES, COUNTER_SLOT, "counter") for name in counters)
    domains = int(layout is SECOND)  # the first of them has no name
    header = HEADER.pack(MAGIC, version, capacity, 0, len(counters), 0, 0, domains, 0)
    try:
        with Path(path).open("xb") as file:
            file.write(header.ljust(COUNTER_TABLE, b"\0") + table)
            file.truncate(layout.records + layout.record_bytes(len(counters)) * capacity)
    except OSError as error:
        raise PhasesError(f"Cannot create the phases file {path}: {error.strerror}.") from error


def wanted_counters(value: str | None) -> list[str]:
    """What the variable for counters names, each once: events, separated by commas outside slashes, as in perf."""
    names, inside = [""], False
    for letter in value or "":
        inside ^= letter == "/"
        if letter == "," and not inside:
            names.append("")
        else:
            names[-1] += letter
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


class Reader:
    """The runner's end; it may attach at any time and never disturbs the writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._memory = map_file(path, writable=False)
        self._words = memoryview(self._memory).cast("Q")
        header = HEADER.unpack_from(self._memory)
        self.layout = LAYOUTS[header[1]]
        self._capacity, self._counters = header[2], header[4]
        self.record_bytes = self.layout.record_bytes(self._counters)
        # Now, before anybody writes: what a job may spoil cannot change what the records are taken for.
        self._events = [self._text(COUNTER_TABLE + COUNTER_SLOT * one, COUNTER_BYTES) for one in range(self._counters)]

    @property
    def head(self) -> int:
        """How many records were ever written."""
        return int(self._words[HEAD_AT])

    @property
    def dropped(self) -> int:
        """How many phases the writer could not record."""
        return int(self._words[DROPPED_AT])

    @property
    def opened(self) -> bool:
        """Whether a process has opened the file to write."""
        return bool(HEADER.unpack_from(self._memory)[3])

    @property
    def names(self) -> list[str]:
        """The phases that were named so far; of version 2 also what else was, see `places`."""
        layout = self.layout
        return [self._text(at + layout.before_name, layout.name_bytes) for at in self._name_slots()]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Of every name in a file of version 2 its domain, and what it is the name of."""
        return [struct.unpack_from("HH", self._memory, at) for at in self._name_slots()]

    @property
    def domains(self) -> list[str]:
        """The domains of a file of version 2; the first one has no name."""
        count = min(self._half(DOMAINS_AT), MOST_DOMAINS)
        return [self._text(DOMAIN_TABLE + DOMAIN_SLOT * number, DOMAIN_BYTES) for number in range(count)]

    @property
    def open(self) -> int:
        """How many ranges and epochs have begun in a file of version 2 and not ended."""
        return int(self._words[OPEN_AT])

    @property
    def cut(self) -> int:
        """How many payloads were too long for a file of version 2."""
        return int(self._words[CUT_AT])

    @property
    def counters(self) -> dict[str, Status]:
        """The counters, each with how it fares: counted, not supported, not counted."""
        return {
            event: STATUS[status] if status < len(STATUS) else "not counted"
            for event, (status, _) in zip(self._events, self._fared(), strict=True)
        }

    @property
    def lacks(self) -> dict[str, str]:
        """What is to be known of the numbers of counters, where there is anything: what they lack, and who counted."""
        said = {
            event: "; ".join(word for flag, word in LACKS.items() if flags & flag)
            for event, (_, flags) in zip(self._events, self._fared(), strict=True)
        }
        return {event: words for event, words in said.items() if words}

    def read(self, since: int = 0) -> Chunk:
        """Copy the records from number `since` on; pass the chunk's `head` as the next `since`."""
        head = self.head
        if not 0 <= since <= head:
            raise PhasesError(f"The phases file holds {head} records, so there is no record {since} to go on from.")
        first = self._oldest_safe(since, head)
        data = self._copy(first, head)
        # The writer went on meanwhile: what it may have overwritten is dropped.
        safe = min(self._oldest_safe(first, self.head), head)
        return Chunk(data[self.record_bytes * (safe - first) :], head, safe - since)

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._words.release()
        self._memory.close()

    def _fared(self) -> list[tuple[int, int]]:
        """Status and flags of every counter."""
        slots = range(COUNTER_TABLE, COUNTER_TABLE + COUNTER_SLOT * self._counters, COUNTER_SLOT)
        return [struct.unpack_from("II", self._memory, at + STATUS_AT) for at in slots]

    def _oldest_safe(self, since: int, head: int) -> int:
        """Number the oldest record that the writer cannot be touching while `head` records are published."""
        return max(since, head - int(self._capacity) + 1)

    def _copy(self, first: int, head: int) -> bytes:
        """Copy records first to head-1, which may wrap round the end of the file once."""
        start, count = first % self._capacity, head - first
        until_end = min(count, self._capacity - start)
        size, records = self.record_bytes, self.layout.records
        begin = records + size * start
        tail = self._memory[begin : begin + size * until_end]
        return tail + self._memory[records : records + size * (count - until_end)]

    def _name_slots(self) -> Iterator[int]:
        """Where the names lie that there are."""
        layout = self.layout
        for number in range(min(self._half(NAMES_AT), layout.most_names)):
            yield layout.name_table + layout.name_slot * number

    def _half(self, at: int) -> int:
        """A number of the header, by its place in 4-byte words."""
        return int(struct.unpack_from("I", self._memory, 4 * at)[0])

    def _text(self, at: int, size: int) -> str:
        return self._memory[at : at + size].split(b"\0", 1)[0].decode(errors="replace")


def phases_in(data: bytes, names: Sequence[str], counters: int) -> Iterator[Phase]:
    """The records of a chunk; one whose name is not in the table is left out, because it cannot be whole."""
    for begin, end, step, name, *counts in struct.iter_unpack(f"{4 + counters}q", data):
        if 0 <= name < len(names) and begin <= end:
            known = tuple(None if count == NOTHING else count for count in counts)
            yield Phase(names[name], begin, end, None if step == NOTHING else step, known)


def map_file(
    path: str | os.PathLike[str], *, writable: bool, layouts: Sequence[Layout] = tuple(LAYOUTS.values())
) -> mmap.mmap:
    """Map a phases file into memory after checking that it is one, of a version that is known."""
    try:
        with Path(path).open("r+b" if writable else "rb") as file:
            head = file.read(HEADER.size)
            size = os.fstat(file.fileno()).st_size
            _check(path, head, size, layouts)
            if writable:  # all pages now, so that no record meets a page fault
                return mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except OSError as error:
        raise PhasesError(f"Cannot open the phases file {path}: {error.strerror}.") from error


def _check(path: str | os.PathLike[str], header: bytes, size: int, layouts: Sequence[Layout]) -> None:
    """Refuse anything that is not a whole phases file of one of these versions."""
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise PhasesError(
            f"{path} is not a Castmates phases file: set {VARIABLE} to one that the runner made, or unset it."
        )
    _, version, capacity, _, counters, *_ = HEADER.unpack(header)
    layout = next((one for one in layouts if one.version == version), None)
    if layout is None:
        known = " and ".join(str(one.version) for one in layouts)
        raise PhasesError(
            f"The phases file {path} has version {version} and version {known} is expected here: use the same "
            "Castmates for the runner and the workload."
        )
    fits = counters <= MOST_COUNTERS and size == layout.records + layout.record_bytes(counters) * capacity
    if not _is_capacity(capacity) or not fits:
        raise PhasesError(
            f"The phases file {path} is damaged: {size} bytes do not fit its capacity of {capacity} records."
        )


def _slot(name: str, most: int, size: int, what: str) -> bytes:
    text = name.encode()
    if not 0 < len(text) <= most or "\0" in name:
        raise PhasesError(f"The name of a {what} must have 1 to {most} bytes, but '{name}' has {len(text)}.")
    return text.ljust(size, b"\0")


def _is_capacity(capacity: int) -> bool:
    return 2 <= capacity < 2**32 and capacity & (capacity - 1) == 0
