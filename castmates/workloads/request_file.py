"""The requests file: a ring of records in shared memory. An open-loop service leaves there what became of each request.

The layout and the rules are described, for any language, in docs/services.md.
"""

import mmap
import os
import struct
from pathlib import Path

from castmates.workloads.heartbeat import HeartbeatError, Ring, is_capacity, map_file
from castmates.workloads.phase_file import Chunk

VARIABLE = "CASTMATES_REQUESTS"
MAGIC = b"CASTREQS"
VERSION = 1
CAPACITY = 1 << 18  # more than a second of 200,000 requests a second: it is read once a second at least
HEADER = struct.Struct("8sIIIIQQQ")  # magic, version, capacity, pid, reserved, head, scene, ended
HEAD_AT, SCENE_AT, ENDED_AT = 3, 4, 5  # in 8-byte words
RECORDS = 64
RECORD = 24  # due, sent, answered
PID_AT = 4  # in 4-byte words


def create(path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
    """Make an empty requests file for one service."""
    try:
        with Path(path).open("xb") as file:
            file.write(HEADER.pack(MAGIC, VERSION, capacity, 0, 0, 0, 0, 0))
            file.truncate(RECORDS + RECORD * capacity)
    except OSError as error:
        raise HeartbeatError(f"Cannot create the requests file {path}: {error.strerror}.") from error


class Runners(Ring):
    """The runner's end: it reads the records, and announces each scene to the service."""

    def __init__(self, path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
        with Path(path).open("r+b") as file:
            memory = mmap.mmap(file.fileno(), RECORDS + RECORD * capacity)
        super().__init__(memory, HEAD_AT, capacity, RECORDS, RECORD)

    def scene_ends(self, now_ns: int) -> None:
        """Announce that the scene in which it ran is over at this moment; before it is frozen, if it will be."""
        self._words[ENDED_AT] = now_ns
        self._words[SCENE_AT] += 1

    def scene_begins(self) -> None:
        """Announce that it will run again; before it is thawed."""
        self._words[SCENE_AT] += 1

    def read(self, since: int) -> Chunk:
        """Copy the records from number `since` on; pass the chunk's `head` as the next `since`."""
        return Chunk(*self.copied(since))


class Writer:
    """The service's end; one thread at a time may use it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        memory = map_file(path, "requests", _check, HeartbeatError, writable=True)
        self._words = memoryview(memory).cast("Q")
        self._last_slot = int(HEADER.unpack_from(memory)[2]) - 1
        self._head = self._words[HEAD_AT]
        memoryview(memory).cast("I")[PID_AT] = os.getpid()

    @classmethod
    def from_environment(cls) -> "Writer | None":
        """Open the file that the runner named; None where it named none."""
        path = os.environ.get(VARIABLE)
        return cls(path) if path else None

    @property
    def scene(self) -> int:
        """How many scenes began or ended; to be looked at after the clock."""
        return self._words[SCENE_AT]

    @property
    def ended(self) -> int:
        """When the scene ended that was the last to run before the one that runs now."""
        return self._words[ENDED_AT]

    def done(self, due: int, sent: int = 0, answered: int = 0) -> None:
        """Record a request that was answered, or given up."""
        at = RECORDS // 8 + RECORD // 8 * (self._head & self._last_slot)
        self._words[at], self._words[at + 1], self._words[at + 2] = due, sent, answered
        self._head = self._words[HEAD_AT] = self._head + 1


def _check(path: str | os.PathLike[str], header: bytes, size: int) -> None:
    """Refuse anything that is not a whole requests file of this version."""
    if len(header) >= HEADER.size:
        magic, version, capacity, *_ = HEADER.unpack_from(header)
        if (magic, version) == (MAGIC, VERSION) and is_capacity(capacity) and size == RECORDS + RECORD * capacity:
            return
    raise HeartbeatError(f"{path} is not a whole Castmates requests file of version {VERSION}.")
