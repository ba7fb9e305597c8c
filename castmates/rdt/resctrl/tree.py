"""The resctrl file system as system calls: every refusal is an OSError with the kernel's errno."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.linux.kernel_files import read_text

LOCK_S = 10.0  # how long we wait for others that hold the file system: libpqos gives up after a tenth of a second
_PAUSE_S = 0.005


class Tree(Protocol):
    """A mounted resctrl file system; paths are relative to where it is mounted ("" is that itself)."""

    def read(self, path: str) -> str:
        """Return what a file says."""

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
        """Return what a file says."""
        fd = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(fd, 1 << 16):
                parts.append(part)
            return b"".join(parts).decode(errors="replace")
        finally:
            os.close(fd)

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""
        fd = os.open(self.root / path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

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
                    who = holder(os.fstat(fd).st_ino, read_text(Path("/proc/locks")) or "")
                    raise CastmatesError(
                        f"{self.root} has been locked for {LOCK_S:.0f} s by {who}; end it, or wait until it has ended,"
                        " and run the same command again."
                    ) from None
                time.sleep(_PAUSE_S)


def holder(inode: int, locks: str) -> str:
    """Name who holds the flock on an inode, from the text of /proc/locks."""
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            return f"process {words[4]} ({read_text(Path('/proc', words[4], 'comm')) or 'which has ended'})"
    return "a process that cannot be told from here"
