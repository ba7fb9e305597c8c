"""Who belongs to a member, by a mark that is set before exec and goes wherever its processes go.

Without control groups a process that has forked twice, left its session and emptied its environment is no longer known
as a child. Resource limits go down to all descendants and are shown in /proc. Linux has had no use for the one on the
number of file locks since 2.4, so its soft value names the runner, and its hard one the member's first process.
"""

import contextlib
import os
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from castmates.linux.end_with_parent import end_with_parent
from castmates.linux.kernel_files import read_kernel
from castmates.linux.owned_names import maker_of_folder
from castmates.linux.processes import Family, Process, read_process, read_table

RLIMIT_LOCKS = 10
PID_BITS = 22  # as many as the kernel's greatest PID has

_LIMIT = re.compile(rb"^Max file locks +(\d+) +(\d+)", re.MULTILINE)


class Mark(NamedTuple):
    """What a member's process bears: numbers of the runner and of the member's first process."""

    runner: int
    leader: int


def number_of(pid: int, born: int) -> int:
    """Name a process for ever in one number."""
    return born << PID_BITS | pid


def mark_of(pid: int) -> Mark | None:
    """Read the mark of a process; None where it bears none, or has ended."""
    with contextlib.suppress(OSError):
        if match := _LIMIT.search(read_kernel(f"/proc/{pid}/limits")):
            return Mark(int(match[1]), int(match[2]))
    return None


def is_ours(pid: int) -> bool:
    """Check whether a process was started, at whatever remove, by this very process."""
    mark, me = mark_of(pid), read_process(os.getpid())
    return mark is not None and me is not None and mark.runner == number_of(me.pid, me.born)


def in_child() -> Callable[[], None]:
    """Prepare what a child of this process calls before exec: it bears the mark, and ends when this process does."""
    runner = read_process(os.getpid())
    begin = end_with_parent()

    def prepare() -> None:
        begin()
        leader = read_process(os.getpid())
        if runner is not None and leader is not None:
            marks = number_of(runner.pid, runner.born), number_of(leader.pid, leader.born)
            with contextlib.suppress(OSError, ValueError):  # we were started under a lower limit ourselves
                resource.setrlimit(RLIMIT_LOCKS, marks)

    return prepare


class MarkedFamily(Family):
    """A family that is also known by its mark."""

    def _fellows(self, table: dict[int, Process]) -> list[int]:
        fellows = super()._fellows(table)
        mark = number_of(self.leader, self.born)
        young = [process.pid for process in table.values() if process.born >= self.born]
        return fellows + [pid for pid in young if (own := mark_of(pid)) and own.leader == mark]


def bearers(path: Path) -> list[int]:
    """List who has this path in the environment or, where it is a runner's own scratch folder, bears its mark."""
    maker = maker_of_folder(path.name)
    runner = number_of(maker.pid, maker.born) if maker else None
    pids = []
    for process in read_table().values():
        mark = mark_of(process.pid) if process.alive else None  # who has ended still bears it
        with contextlib.suppress(OSError):  # it has ended, or is another user's and so not ours
            if (mark and mark.runner == runner) or bytes(path) in read_kernel(f"/proc/{process.pid}/environ"):
                pids.append(process.pid)
    return pids
