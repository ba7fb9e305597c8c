"""Asks a running job to profile its next steps, through a page of shared memory; standard library only.

Between two steps the job compares two numbers in memory, which takes some tens of nanoseconds: no signal, no look at
a file system. A job that can be profiled marks it in the page; its answer is a file beside it.
"""

import json
import mmap
import os
import sys
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

VARIABLE = "CASTMATES_PROFILE"  # names the page
FOLDER = "CASTMATES_TRACES"  # names the folder in which whole traces are to be left; none: they are added up
GRAPH = "graph"  # what a job leaves beside the page: the graph of its step (step_graph.py)
ABLE, STEPS, ASKED, INPUT = range(4)  # words of 8 bytes
PROFILES, BEGINS_ANEW = 1, 2  # bits of ABLE: what the job can do
SIZE = 4096


class Input(IntEnum):
    """Where the input of the steps comes from that are profiled."""

    GOES_ON = 0  # from where it is
    ANEW = 1  # from the first record on, whatever the page cache has of it
    FROM_STORAGE = 2  # from the first record on, after its files were dropped from the page cache


class PageError(ValueError):
    """A page that cannot be opened, or an answer that cannot be read; the message is one sentence for the user."""


class Page:
    """The page, seen by either side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), SIZE)
                self._identity = _identity(os.fstat(file.fileno()))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is too short"
            raise PageError(
                f"Cannot open the page {path} ({VARIABLE}): {why}; unset it, or let the runner make it."
            ) from error
        self._words = memoryview(self._memory).cast("Q")

    @classmethod
    def create(cls, path: Path) -> "Page":
        """Make an empty page."""
        path.write_bytes(bytes(SIZE))
        return cls(path)

    @classmethod
    def from_environment(cls) -> "Page | None":
        """The page that the runner named, if it named one."""
        path = os.environ.get(VARIABLE)
        return cls(Path(path)) if path else None

    @property
    def sound(self) -> bool:
        """Whether the file is as it was mapped: to touch the page of a file that was cut kills who does."""
        try:
            return _identity(self.path.stat()) == self._identity
        except OSError:
            return False

    @property
    def able(self) -> bool:
        """Whether the job has marked that it can be profiled."""
        return bool(self._words[ABLE] & PROFILES)

    @property
    def begins_anew(self) -> bool:
        """Whether the job has marked that it can begin its input anew before a profile."""
        return bool(self._words[ABLE] & BEGINS_ANEW)

    def offer(self, *, anew: bool = False) -> None:
        """Mark that this job can be profiled, and whether it can begin its input anew before that."""
        self._words[ABLE] = PROFILES | (BEGINS_ANEW if anew else 0)

    @property
    def asked(self) -> int:
        """How many profiles were asked for so far: the number of the last one."""
        return self._words[ASKED]

    @property
    def steps(self) -> int:
        """How many steps the last one wants."""
        return self._words[STEPS]

    @property
    def input(self) -> Input:
        """Where their input comes from."""
        return Input(self._words[INPUT])

    def ask(self, steps: int, source: Input = Input.GOES_ON) -> int:
        """Ask for a profile of so many steps; its number."""
        self._words[STEPS] = steps
        self._words[INPUT] = source
        self._words[ASKED] += 1  # last: the job reads the steps when it sees another number
        return self._words[ASKED]

    def answer(self, number: int, content: dict[str, Any]) -> None:
        """Write the answer, which appears whole."""
        place = self._answer(number)
        unfinished = place.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(place)

    def answered(self, number: int) -> dict[str, Any] | None:
        """Take the answer away, once it is there."""
        place = self._answer(number)
        if not place.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
            place.unlink()
        except (OSError, ValueError, RecursionError) as error:
            raise PageError(f"the answer cannot be read: {error}") from error
        return content

    def leave(self, name: str, content: bytes) -> None:
        """Leave something beside the page that is not the answer to a question; it appears whole."""
        place = self._left(name)
        unfinished = place.with_suffix(".unfinished")
        unfinished.write_bytes(content)
        unfinished.replace(place)

    def left(self, name: str) -> bytes | None:
        """What the job has left under this name; None for nothing."""
        try:
            return self._left(name).read_bytes()
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Let go of the page; safe to call twice."""
        self._words.release()
        self._memory.close()

    def _answer(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}.json")

    def _left(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.left.{name}")


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_size


# Keeps oneDNN's log of its primitives, of traced steps alone; standard library only.
#
# oneDNN logs to file descriptor 1 from its first primitive on, or never: the variables that switch it on are read once,
# and TensorFlow exports nothing to switch it later. So what that descriptor leads to is changed between steps: while
# steps are traced it is a file beside the trace, else nothing. The warm-up is logged where the job's output goes, with
# the lines that name oneDNN's version; what Python prints always goes there.

LOG_VARIABLE = "CASTMATES_PRIMITIVES"  # set: traces have the log beside them
LOG_SETTINGS = {"ONEDNN_VERBOSE": "profile_exec", "ONEDNN_VERBOSE_TIMESTAMP": "1"}  # what switches oneDNN's log on
LOG = "onednn.log"  # in the folder of a trace
STDOUT = 1


class PrimitiveLog:
    """Where oneDNN's log goes."""

    def __init__(self) -> None:
        self._nowhere = os.open(os.devnull, os.O_WRONLY)

    @classmethod
    def wanted(cls) -> "PrimitiveLog | None":
        """One where the runner wants it, else None."""
        return cls() if os.environ.get(LOG_VARIABLE) else None

    def warmed_up(self) -> None:
        """Let it go nowhere from now on, and what Python prints where it went; after the first step that counts."""
        sys.stdout.flush()
        sys.stdout = os.fdopen(os.dup(STDOUT), "w", buffering=1)
        os.dup2(self._nowhere, STDOUT)

    def begin(self, folder: str) -> None:
        """Let it go into the folder of a trace; an OSError if it cannot."""
        with (Path(folder) / LOG).open("wb") as file:
            os.dup2(file.fileno(), STDOUT)

    def end(self) -> None:
        """Let it go nowhere."""
        with suppress(OSError):
            os.dup2(self._nowhere, STDOUT)
