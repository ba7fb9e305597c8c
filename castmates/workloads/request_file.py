"""The requests file: a ring of records in shared memory. An open-loop service leaves there what became of each request.

The layout and the rules are described, for any language, in docs/services.md.
"""

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError

VARIABLE = "CASTMATES_REQUESTS"
MAGIC = b"CASTREQS"
VERSION = 1
CAPACITY = 1 << 18  # more than a second of 200,000 requests a second: it is read once a second at least
HEADER = struct.Struct("8sIIIIQQQ")  # magic, version, capacity, pid, reserved, head, scene, ended
HEAD_AT, SCENE_AT, ENDED_AT = 3, 4, 5  # in 8-byte words
RECORDS = 64
RECORD = 24  # due, sent, answered


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records as they lie in the file, where to go on, and how many the reader came too late for."""

    data: bytes
    head: int
    lost: int


def create(path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
    """Make an empty requests file for one service."""
    try:
        with Path(path).open("xb") as file:
            file.write(HEADER.pack(MAGIC, VERSION, capacity, 0, 0, 0, 0, 0))
            file.truncate(RECORDS + RECORD * capacity)
    except OSError as error:
        raise CastmatesError(f"Cannot create the requests file {path}: {error.strerror}.") from error


class Runners:
    """The runner's end: it reads the records, and announces each scene to the service."""

    def __init__(self, path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), RECORDS + RECORD * capacity)
        self._words = memoryview(self._memory).cast("Q")
        self._capacity = capacity

    def scene_ends(self, now_ns: int) -> None:
        """Announce that the scene in which it ran is over at this moment; before it is frozen, if it will be."""
        self._words[ENDED_AT] = now_ns
        self._words[SCENE_AT] += 1

    def scene_begins(self) -> None:
        """Announce that it will run again; before it is thawed."""
        self._words[SCENE_AT] += 1

    @property
    def head(self) -> int:
        """How many records were ever written."""
        return int(self._words[HEAD_AT])

    def read(self, since: int) -> Chunk:
        """Copy the records from number `since` on; pass the chunk's `head` as the next `since`."""
        head = self.head
        first = self._oldest_safe(since, head)
        data = self._copy(first, head)
        # The writer went on meanwhile: what it may have overwritten is dropped.
        safe = min(self._oldest_safe(first, self.head), head)
        return Chunk(data[RECORD * (safe - first) :], head, safe - since)

    def _oldest_safe(self, since: int, head: int) -> int:
        """Number the oldest record that the writer cannot be touching while `head` records are published."""
        return max(since, head - self._capacity + 1)

    def _copy(self, first: int, head: int) -> bytes:
        """Copy records first to head-1, which may wrap round the end of the file once."""
        start, count = first % self._capacity, head - first
        until_end = min(count, self._capacity - start)
        begin = RECORDS + RECORD * start
        tail = self._memory[begin : begin + RECORD * until_end]
        return tail + self._memory[RECORDS : RECORDS + RECORD * (count - until_end)]
