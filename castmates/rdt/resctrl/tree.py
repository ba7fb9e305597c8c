"""The resctrl file system as system calls: every refusal is an OSError with the kernel's errno."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.linux.host import flock_holder
from castmates.linux.kernel_files import read_kernel, write_kernel
from castmates.linux.processes import held_by_root, name_of

LOCK_S = 10.0  # how long we wait for others that hold the file system: libpqos gives up after a tenth of a second
_PAUSE_S = 0.005


class Tree(Protocol):
    """A mounted resctrl file system; paths are relative to where it is mounted ("" is that itself)."""

    def read(self, path: str) -> str:
        """Return the text of a file."""

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""

    def make(self, path: str) -> None:
        """Make a group: mkdir(2)."""

    def remove(self, path: str) -> None:
        """Remove a group: rmdir(2)."""

    def names(self, path: str) -> list[str]:
        """Name the files and folders in a folder, sorted."""

    def locked(self, exclusive: bool = True) -> AbstractContextManager[None]:
        """Hold the file system against others that keep to the convention of flock(2) on its root."""


class KernelTree:
    """The one that the kernel has mounted."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return read_kernel(self.root / path).decode(errors="replace")

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""
        write_kernel(self.root / path, text)

    def make(self, path: str) -> None:
        """Make a group: mkdir(2)."""
        os.mkdir(self.root / path, 0o755)  # noqa: PTH102

    def remove(self, path: str) -> None:
        """Remove a group: rmdir(2)."""
        os.rmdir(self.root / path)  # noqa: PTH106

    def names(self, path: str) -> list[str]:
        """Name the files and folders in a folder, sorted."""
        return sorted(os.listdir(self.root / path))  # noqa: PTH208

    @contextmanager
    def locked(self, exclusive: bool = True) -> Iterator[None]:
        """Hold the file system against others that keep to the convention of flock(2) on its root."""
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    def _lock(self, fd: int, how: int) -> None:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                return fcntl.flock(fd, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    holder = flock_holder(os.fstat(fd))
                    if os.geteuid() == 0 and holder is not None and not held_by_root(holder, os.fstat(fd)):
                        return None  # whoever may look into the folder may lock it, and root is not held up by that
                    who = in_words(holder)
                    raise CastmatesError(
                        f"{self.root} has been locked for {LOCK_S:.0f} s by {who}; end it, or wait until it has ended,"
                        " and run the same command again."
                    ) from None
                time.sleep(_PAUSE_S)


def in_words(holder: int | None) -> str:
    """Name the process that holds a lock."""
    if holder is None:
        return "a process that cannot be identified from here"
    return f"process {holder} ({name_of(holder) or 'which has ended'})"
