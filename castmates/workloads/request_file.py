"""The requests file: a ring of records in shared memory. An open-loop service leaves there what became of each request.

The layout and the rules are described, for any language, in docs/services.md.
"""

import mmap
import os
import struct
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.workloads.heartbeat import Ring
from castmates.workloads.phase_file import Chunk

VARIABLE = "CASTMATES_REQUESTS"
MAGIC = b"CASTREQS"
VERSION = 1
CAPACITY = 1 << 18  # more than a second of 200,000 requests a second: it is read once a second at least
HEADER = struct.Struct("8sIIIIQQQ")  # magic, version, capacity, pid, reserved, head, scene, ended
HEAD_AT, SCENE_AT, ENDED_AT = 3, 4, 5  # in 8-byte words
RECORDS = 64
RECORD = 24  # due, sent, answered


def create(path: str | os.PathLike[str], capacity: int = CAPACITY) -> None:
    """Make an empty requests file for one service."""
    try:
        with Path(path).open("xb") as file:
            file.write(HEADER.pack(MAGIC, VERSION, capacity, 0, 0, 0, 0, 0))
            file.truncate(RECORDS + RECORD * capacity)
    except OSError as error:
        raise CastmatesError(f"Cannot create the requests file {path}: {error.strerror}.") from error


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
