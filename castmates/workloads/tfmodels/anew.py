"""Begins a job's input anew, with its files in the page cache or out of it; standard library only.

Linux drops the pages of a file for anybody who may read it, unless they are to be written or somebody has mapped them.
Whether it did is shown by what the process has storage read for it afterwards.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import Protocol

from castmates.workloads.tfmodels.profile_page import Input
from castmates.workloads.tfmodels.wish import Wish


class Source(Protocol):
    """What batches come from."""

    def close(self) -> None:
        """Let go of the pipeline and its files."""

    def begin_anew(self) -> None:
        """Go on with the first record."""


class Records:
    """The input of a job that reads records."""

    def __init__(self, source: Source, pattern: str) -> None:
        self._source = source
        self._files = sorted(glob(pattern))  # noqa: PTH207  (a pattern from anywhere, not below a folder)

    @classmethod
    def of(cls, source: Source, wish: Wish) -> "Records | None":
        """That of a job that reads records, else None."""
        return cls(source, wish.data) if wish.source == "records" and wish.data else None

    def begin(self, wanted: Input) -> None:
        """Begin anew, where that is wanted, with what the page cache has, or without."""
        if wanted is Input.GOES_ON:
            return
        self._source.close()
        if wanted is Input.FROM_STORAGE:
            drop(self._files)
        self._source.begin_anew()


def drop(files: Iterable[str]) -> None:
    """Have the kernel drop the pages of these files, as far as it can."""
    for file in files:
        with suppress(OSError):  # what is not dropped is not read from storage, and that is counted
            descriptor = os.open(file, os.O_RDONLY)
            try:
                with suppress(OSError):  # read-only file systems cannot; pages that are to be written are not dropped
                    os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


class StorageBytes:
    """How many bytes this process has storage read for it between two moments; None where that is not known."""

    def __init__(self) -> None:
        self._before: int | None = None
        self.read: int | None = None

    def begin(self) -> None:
        """Count from here on."""
        self._before, self.read = _read_so_far(), None

    def end(self) -> None:
        """Count no further."""
        after = _read_so_far()
        self.read = None if after is None or self._before is None else after - self._before


def _read_so_far(io: Path = Path("/proc/self/io")) -> int | None:
    """Bytes since the process began; None where the kernel does not count them."""
    try:
        lines = dict(line.split(": ", 1) for line in io.read_text(encoding="ascii").splitlines())
        return int(lines["read_bytes"])
    except (OSError, LookupError, ValueError):
        return None
