"""Lets a job stand still between two steps before it is frozen, for jobs that queue work on a GPU (standard library).

A frozen process queues nothing more, but what it has queued already goes on beside the next scene. A job whose steps
end when the device has done everything asks after each step whether it is to stand. docs/gpu.md describes the file.
"""

import mmap
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

VARIABLE = "CASTMATES_STANDING"
MAGIC = b"CASTSTND"
VERSION = 1
SIZE = 64
PAUSE_S = 0.00005  # between two looks of a job that stands

_HEADER = struct.Struct("8sII")  # magic, version, reserved
_ASKED_AT, _STANDING_AT = 2, 3  # in 8-byte words: odd numbers ask to stand, and the job repeats the one it stands for


class StandingError(ValueError):
    """A file that cannot be used; the message is one sentence."""


class Standing:
    """One end of the file; every call of the job does nothing where no runner asks."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._words: memoryview | None = None
        if path is None:
            return
        try:
            with Path(path).open("r+b") as file:
                header = file.read(_HEADER.size)
                if os.fstat(file.fileno()).st_size != SIZE or header[: _HEADER.size - 4] != _header()[:-4]:
                    raise StandingError(f"{path} is not a file of this version in which a job is asked to stand.")
                self._words = memoryview(mmap.mmap(file.fileno(), SIZE)).cast("Q")
        except OSError as error:
            raise StandingError(f"Cannot open {path}: {error.strerror}.") from error

    @classmethod
    def from_environment(cls) -> "Standing":
        """The job's end of the file that the runner named, or one that does nothing."""
        return cls(os.environ.get(VARIABLE) or None)

    @classmethod
    def create(cls, path: Path) -> "Standing":
        """The runner's end of a new file, in which the job is asked to stand as soon as it is ready."""
        path.write_bytes(_header().ljust(SIZE, b"\0"))
        made = cls(path)
        made.ask()
        return made

    def stand(self, leaving: Callable[[], bool] = lambda: False) -> None:
        """For the job, between two steps, with nothing queued: stand as long as the runner asks."""
        words = self._words
        if words is None:
            return
        while (asked := words[_ASKED_AT]) % 2 and not leaving():
            words[_STANDING_AT] = asked
            time.sleep(PAUSE_S)

    def ask(self) -> None:
        """For the runner: ask the job to stand, with a number that it has not seen before."""
        if self._words is not None and not self._words[_ASKED_AT] % 2:
            self._words[_ASKED_AT] += 1

    def stands(self) -> bool:
        """For the runner: whether the job stands because of the last `ask`."""
        return self._words is not None and self._words[_STANDING_AT] == self._words[_ASKED_AT]

    def let_go(self) -> None:
        """For the runner: let the job make steps again."""
        if self._words is not None and self._words[_ASKED_AT] % 2:
            self._words[_ASKED_AT] += 1


def _header() -> bytes:
    return _HEADER.pack(MAGIC, VERSION, 0)
