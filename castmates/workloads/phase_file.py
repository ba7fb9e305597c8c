"""The phases file: a ring of records in shared memory (standard library only, Python 3.10 on).

Its layout is in phase_file.py; docs/phases.md has it for any language, with the rules.
"""

import mmap
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import Ring, is_capacity

# The layout of the phases file (standard library only, Python 3.10 on).
#
# docs/phases.md describes it for any language; castmates_phases.h has it for C.

MAGIC = b"CASTPHAS"
VERSION = 1
CAPACITY = 65536
NOTHING = -1  # no step, no epoch, no count

HEADER = struct.Struct("8sIIIIQIIQ")  # magic, version, capacity, pid, counters, head, names, domains, dropped
PID_AT, NAMES_AT, DOMAINS_AT = 4, 8, 9  # in 4-byte words
HEAD_AT, DROPPED_AT, OPEN_AT, CUT_AT = 3, 5, 6, 7  # in 8-byte words

COUNTER_TABLE, COUNTER_SLOT, MOST_COUNTERS, COUNTER_BYTES = 64, 64, 8, 55
STATUS_AT = COUNTER_BYTES + 1  # of a counter's slot; behind it the flags
# Domain 0 has no name. A table without even that one: only phases of no domain are wanted.
DOMAIN_TABLE, DOMAIN_SLOT, MOST_DOMAINS, DOMAIN_BYTES = COUNTER_TABLE + MOST_COUNTERS * COUNTER_SLOT, 64, 16, 63
NAME_TABLE, NAME_SLOT, MOST_NAMES, NAME_BYTES = DOMAIN_TABLE + MOST_DOMAINS * DOMAIN_SLOT, 128, 512, 123
PLACE = struct.Struct("HH")  # before a name in its slot: its domain, and what it is the name of

PHASE, RANGE, INSTANT, EPOCH = range(1, 5)  # what a record is of
TYPES = {PHASE: "phase", RANGE: "range", INSTANT: "instant", EPOCH: "epoch"}
RECORDS = NAME_TABLE + MOST_NAMES * NAME_SLOT
# Begin, end, step, epoch, name, type and flags, threads that began and ended it, bytes of payload, reserved; behind it
# a number for each counter, and the room for the payload.
RECORD = struct.Struct("4q6Iq")
TYPE_AT, LENGTH_AT = 36, 48  # bytes into it
PAYLOAD_BYTES = 64
PAYLOAD_LOST = 1 << 8  # flag beside the type: the payload was too long


def record_bytes(counters: int) -> int:
    """The size of a record."""
    return RECORD.size + 8 * counters + PAYLOAD_BYTES


VARIABLE = "CASTMATES_PHASES"  # the file
COUNTERS_VARIABLE = "CASTMATES_PHASE_COUNTERS"
METHOD_VARIABLE = "CASTMATES_PHASE_COUNTER_METHOD"  # perf, which it is without the variable, or papi
OTHER_THREADS = "threads"  # what threads other than the first do lies in this phase

# How a counter fares.
_NOT_TRIED, COUNTED, NOT_SUPPORTED, NOT_COUNTED = range(4)
Status = Literal["counted", "not supported", "not counted"]
STATUS: tuple[Status, ...] = ("not counted", "counted", "not supported", "not counted")
USER_ONLY, SOME_THREADS, BY_PAPI = 1, 2, 4  # flags of what its numbers lack, and who counted
LACKS = {USER_ONLY: "user mode only", SOME_THREADS: "threads may be missing", BY_PAPI: "counted by PAPI"}


class PhasesError(ValueError):
    """A phases file that cannot be made, read or written; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records as they lie in the file, where to go on, and how many the reader came too late for."""

    data: bytes
    head: int
    lost: int


def create(
    path: str | os.PathLike[str], counters: Sequence[str] = (), capacity: int = CAPACITY, *, ranges: bool = True
) -> None:
    """Make an empty phases file for one process, with these counters to be read at the edges of its phases.

    Without `ranges` the process writes phases of no domain, and nothing else.
    """
    if not is_capacity(capacity):
        raise PhasesError(f"The capacity of a phases file must be a power of two from 2 on, but is {capacity}.")
    if len(counters) > MOST_COUNTERS:
        raise PhasesError(f"Phases can have {MOST_COUNTERS} counters, but {len(counters)} are wanted: name fewer.")
    if len(set(counters)) < len(counters):
        raise PhasesError(f"Phases can have each counter once, but {', '.join(counters)} names one twice.")
    table = b"".join(_slot(name, COUNTER_BYTES, COUNTER_SLOT, "counter") for name in counters)
    header = HEADER.pack(MAGIC, VERSION, capacity, 0, len(counters), 0, 0, int(ranges), 0)
    try:
        with Path(path).open("xb") as file:
            file.write(header.ljust(COUNTER_TABLE, b"\0") + table)
            file.truncate(RECORDS + record_bytes(len(counters)) * capacity)
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


class Reader(Ring):
    """The runner's end; it may attach at any time and never disturbs the writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        memory = map_file(path, writable=False)
        _, _, capacity, _, self._counters, *_ = HEADER.unpack_from(memory)
        super().__init__(memory, HEAD_AT, capacity, RECORDS, record_bytes(self._counters))
        # Now, before anybody writes: what a job may spoil cannot change what the records are taken for.
        self._events = [text_at(self._memory, slot, COUNTER_BYTES) for slot in self._counter_slots()]

    @property
    def dropped(self) -> int:
        """How many phases the writer could not record."""
        return int(self._words[DROPPED_AT])

    @property
    def names(self) -> list[str]:
        """What was named so far; of what each is the name is in `places`."""
        return [text_at(self._memory, slot + PLACE.size, NAME_BYTES) for slot in self._name_slots()]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Of every name its domain, and what it is the name of."""
        return [PLACE.unpack_from(self._memory, slot) for slot in self._name_slots()]

    @property
    def domains(self) -> list[str]:
        """The domains; the first one has no name."""
        count = min(self._half(DOMAINS_AT), MOST_DOMAINS)
        return [text_at(self._memory, DOMAIN_TABLE + DOMAIN_SLOT * number, DOMAIN_BYTES) for number in range(count)]

    @property
    def open(self) -> int:
        """How many ranges and epochs have begun and not ended."""
        return int(self._words[OPEN_AT])

    @property
    def cut(self) -> int:
        """How many payloads were too long."""
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
        return Chunk(*self.copied(since))

    def _fared(self) -> list[tuple[int, int]]:
        """Status and flags of every counter."""
        return [struct.unpack_from("II", self._memory, slot + STATUS_AT) for slot in self._counter_slots()]

    def _counter_slots(self) -> range:
        return range(COUNTER_TABLE, COUNTER_TABLE + COUNTER_SLOT * self._counters, COUNTER_SLOT)

    def _name_slots(self) -> range:
        """Where the names lie that there are."""
        count = min(self._half(NAMES_AT), MOST_NAMES)
        return range(NAME_TABLE, NAME_TABLE + NAME_SLOT * count, NAME_SLOT)

    def _half(self, at: int) -> int:
        """A number of the header, by its place in 4-byte words."""
        return int(struct.unpack_from("I", self._memory, 4 * at)[0])


def map_file(path: str | os.PathLike[str], *, writable: bool) -> mmap.mmap:
    """Map a phases file into memory after checking that it is one."""
    return heartbeat.map_file(path, "phases", _check, PhasesError, writable=writable)


def text_at(memory: mmap.mmap, at: int, size: int) -> str:
    """A text that is padded with zeros."""
    return memory[at : at + size].split(b"\0", 1)[0].decode(errors="replace")


def _check(path: str | os.PathLike[str], header: bytes, size: int) -> None:
    """Refuse anything that is not a whole phases file of this version."""
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise PhasesError(
            f"{path} is not a Castmates phases file: set {VARIABLE} to one that the runner made, or unset it."
        )
    _, version, capacity, _, counters, *_ = HEADER.unpack_from(header)
    if version != VERSION:
        raise PhasesError(
            f"The phases file {path} has version {version} and version {VERSION} is expected here: use the same "
            "Castmates for the runner and the workload."
        )
    if not is_capacity(capacity) or counters > MOST_COUNTERS or size != RECORDS + record_bytes(counters) * capacity:
        raise PhasesError(
            f"The phases file {path} is damaged: {size} bytes do not fit its capacity of {capacity} records."
        )


def _slot(name: str, most: int, size: int, what: str) -> bytes:
    text = name.encode()
    if not 0 < len(text) <= most or "\0" in name:
        raise PhasesError(f"The name of a {what} must have 1 to {most} bytes, but '{name}' has {len(text)}.")
    return text.ljust(size, b"\0")
