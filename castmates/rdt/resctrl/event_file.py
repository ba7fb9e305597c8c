"""Reads one monitoring file again and again: a number of bytes, or why there is none."""

import errno
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from castmates.rdt.resctrl.tree import KernelTree, Tree

NOT_READY = "Unavailable"  # of an id that was given out or taken over a moment ago

# The kernel's words, and what they mean.
WORDS = {
    NOT_READY: "Unavailable: the hardware has no count yet",
    "Error": "Error: the hardware could not count",
    "Unassigned": "Unassigned: no counter of the hardware is assigned to this group",
}


class Reading(NamedTuple):
    """A number, or None and the reason."""

    number: int | None
    why: str = ""
    resumed: bool = False  # the hardware had lost count, and has begun anew with this number


@dataclass
class EventFile:
    """One event of one group in one cache; kept open where that can be, since opening costs more than reading."""

    tree: Tree
    path: str
    reads: int = field(default=0, init=False)  # system calls
    _fd: int | None = field(default=None, init=False)

    def read(self) -> Reading:
        """Return the number, or None and the reason; what is not ready is asked once more.

        The hardware shows only once that it had lost count: the second answer is a number like any other.
        """
        try:
            first = text = self._text()
            if first == NOT_READY:
                text = self._text()
        except OSError as error:
            self.close()
            number = error.errno or 0
            return Reading(None, errno.errorcode.get(number, str(error.errno)) + GONE.get(number, ""))
        if text.isdecimal():
            return Reading(int(text), resumed=first == NOT_READY)
        return Reading(None, WORDS.get(text, f"not a number: {text[:40]!r}"))

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _text(self) -> str:
        if not isinstance(self.tree, KernelTree):
            self.reads += 1
            return self.tree.read(self.path).strip()
        if self._fd is None:
            self._fd = os.open(self.tree.root / self.path, os.O_RDONLY | os.O_CLOEXEC)
            self.reads += 1
        self.reads += 1
        return os.pread(self._fd, 64, 0).decode(errors="replace").strip()


GONE = {
    errno.ENOENT: ": the group or its cache is gone",
    errno.ENODEV: ": the group was removed",
    errno.EIO: ": the hardware could not count",
}
