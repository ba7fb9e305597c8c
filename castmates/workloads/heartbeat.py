"""The heartbeat: a shared file in which a workload reports how far it is (standard library only, Python 3.10 on).

The layout and the rules are described, for any language, in docs/heartbeat.md.
"""

import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from time import monotonic_ns
from types import TracebackType

VARIABLE = "CASTMATES_HEARTBEAT"
MAGIC = b"CASTBEAT"
VERSION = 1
CAPACITY = 65536

_HEADER = struct.Struct("8sIIIIQ")  # magic, version, capacity, state, pid, head
_RECORD = struct.Struct("QQ")  # CLOCK_MONOTONIC ns, units so far
_RECORDS_AT = 64
_STATE_AT = 4  # in 4-byte words
_PID_AT = 5
_HEAD_AT = 3  # in 8-byte words
_FIRST_WORD = 8

Check = Callable[["str | os.PathLike[str]", bytes, int], None]  # of a file, its first bytes and its size


class HeartbeatError(ValueError):
    """A heartbeat file that cannot be made, read or written; the message is one sentence for the user."""


class State(IntEnum):
    """Where a workload stands."""

    STARTING = 0
    READY = 1
    FINISHED = 2
    FAILED = 3


@dataclass(frozen=True)
class Beats:
    """What a reader found: (ns, units so far) records, where to go on, and how many it came too late for."""

    records: list[tuple[int, int]]
    head: int
    lost: int


def create(path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
    """Make an empty heartbeat file for one workload."""
    if not is_capacity(capacity):
        raise HeartbeatError(f"The heartbeat capacity must be a power of two from 2 on, but is {capacity}.")
    try:
        with Path(path).open("xb") as file:
            file.write(_HEADER.pack(MAGIC, VERSION, capacity, State.STARTING, 0, 0))
            file.truncate(_RECORDS_AT + _RECORD.size * capacity)
    except OSError as error:
        raise HeartbeatError(f"Cannot create the heartbeat file {path}: {error.strerror}.") from error


class Writer:
    """The workload's end; it never blocks, and every call does nothing where no runner listens.

    One thread at a time may use it.
    """

    __slots__ = ("_head", "_last_slot", "_memory", "_states", "_units", "_words")

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._memory: mmap.mmap | None = None
        if path is None:
            return
        self._memory = memory = _map(path, writable=True)
        self._words = memoryview(memory).cast("Q")
        self._states = memoryview(memory).cast("I")
        self._last_slot = _capacity(memory) - 1
        self._head = self._words[_HEAD_AT]
        self._units = 0
        if self._head:  # another process wrote before: the count goes on
            self._units = self._words[_FIRST_WORD + 2 * ((self._head - 1) & self._last_slot) + 1]
        self._states[_PID_AT] = os.getpid()

    @classmethod
    def from_environment(cls) -> "Writer":
        """Open the file that the runner named, or a writer that does nothing."""
        return cls(os.environ.get(VARIABLE) or None)

    def ready(self) -> None:
        """Report that start-up is over: from here on every beat counts."""
        self._enter(State.READY)

    def beat(self, units: int = 1) -> None:
        """Report that this many more units are done."""
        if self._memory is None:
            return
        # Assigning to a memoryview stores all eight bytes at once; struct.pack_into zeroes them first, and a
        # reader would see a head of 0.
        words, head = self._words, self._head
        slot = _FIRST_WORD + 2 * (head & self._last_slot)
        self._units = done = self._units + units
        words[slot] = monotonic_ns()
        words[slot + 1] = done
        self._head = words[_HEAD_AT] = head + 1

    def finished(self) -> None:
        """Report that the work ended well."""
        self._enter(State.FINISHED)

    def failed(self) -> None:
        """Report that the work cannot go on."""
        self._enter(State.FAILED)

    def _enter(self, state: State) -> None:
        if self._memory is not None:
            self._states[_STATE_AT] = state


class Ring:
    """The reading end of a ring of records in shared memory, whose writer goes on meanwhile."""

    def __init__(self, memory: mmap.mmap, head_at: int, capacity: int, records_at: int, record_bytes: int) -> None:
        self.record_bytes = record_bytes
        self._memory, self._head_at, self._capacity, self._records_at = memory, head_at, capacity, records_at
        self._words = memoryview(memory).cast("Q")

    @property
    def head(self) -> int:
        """How many records were ever written."""
        return int(self._words[self._head_at])

    def copied(self, since: int) -> tuple[bytes, int, int]:
        """Copy the records from number `since` on; with them, where to go on, and how many it came too late for."""
        head = self.head
        first = self._oldest_safe(since, head)
        data = self._copy(first, head)
        # The writer went on meanwhile: what it may have overwritten is dropped.
        safe = min(self._oldest_safe(first, self.head), head)
        return data[self.record_bytes * (safe - first) :], head, safe - since

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._words.release()
        self._memory.close()

    def _oldest_safe(self, since: int, head: int) -> int:
        """Number the oldest record that the writer cannot be touching while `head` records are published."""
        return max(since, head - self._capacity + 1)

    def _copy(self, first: int, head: int) -> bytes:
        """Copy records first to head-1, which may wrap round the end of the file once."""
        start, count = first % self._capacity, head - first
        until_end, size = min(count, self._capacity - start), self.record_bytes
        begin = self._records_at + size * start
        tail = self._memory[begin : begin + size * until_end]
        return tail + self._memory[self._records_at : self._records_at + size * (count - until_end)]


class Reader(Ring):
    """The runner's end; it may attach at any time and never disturbs the writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        memory = _map(path, writable=False)
        super().__init__(memory, _HEAD_AT, _capacity(memory), _RECORDS_AT, _RECORD.size)
        self._path = path
        self._states = memoryview(memory).cast("I")

    @property
    def state(self) -> State:
        """What the workload reported last about itself."""
        value = self._states[_STATE_AT]
        if value not in State._value2member_map_:
            raise HeartbeatError(f"The heartbeat file {self._path} is damaged: its state is {value}, not 0 to 3.")
        return State(value)

    @property
    def pid(self) -> int:
        """The process that writes, or 0 before it has opened the file."""
        return self._states[_PID_AT]

    def beats(self, since: int = 0) -> Beats:
        """Read the records from number `since` on; pass the result's `head` as the next `since`."""
        head = self.head
        if not 0 <= since <= head:
            raise HeartbeatError(
                f"The heartbeat file {self._path} holds {head} records, so there is no record {since} to go on from."
            )
        data, head, lost = self.copied(since)
        return Beats(list(_RECORD.iter_unpack(data)), head, lost)

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._states.release()
        super().close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def map_file(
    path: str | os.PathLike[str], what: str, check: Check, error: type[ValueError], *, writable: bool
) -> mmap.mmap:
    """Map a file into memory after a check of its header and size; `error` says why it cannot be opened."""
    try:
        with Path(path).open("r+b" if writable else "rb") as file:
            head, size = file.read(_RECORDS_AT), os.fstat(file.fileno()).st_size
            check(path, head, size)
            if writable:  # all pages now, so that no record meets a page fault
                return mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except OSError as problem:
        raise error(f"Cannot open the {what} file {path}: {problem.strerror}.") from problem


def _map(path: str | os.PathLike[str], *, writable: bool) -> mmap.mmap:
    return map_file(path, "heartbeat", _check, HeartbeatError, writable=writable)


def _check(path: str | os.PathLike[str], header: bytes, size: int) -> None:
    """Refuse anything that is not a whole heartbeat file of this version."""
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        raise HeartbeatError(
            f"{path} is not a Castmates heartbeat file: set {VARIABLE} to one that the runner made, or unset it."
        )
    _, version, capacity, *_ = _HEADER.unpack_from(header)
    if version != VERSION:
        raise HeartbeatError(
            f"The heartbeat file {path} has version {version} and this module reads version {VERSION}: "
            "use the same Castmates for the runner and the workload."
        )
    if not is_capacity(capacity) or size != _RECORDS_AT + _RECORD.size * capacity:
        raise HeartbeatError(
            f"The heartbeat file {path} is damaged: {size} bytes do not fit its capacity of {capacity} records."
        )


def is_capacity(capacity: int) -> bool:
    """Whether a ring can have so many records: a power of two."""
    return 2 <= capacity < 2**32 and capacity & (capacity - 1) == 0


def _capacity(memory: mmap.mmap) -> int:
    capacity: int = _HEADER.unpack_from(memory)[2]
    return capacity
