"""Who belongs to a member, by a mark that is set before exec and goes wherever its processes go.

Without control groups a process that has forked twice, left its session and emptied its environment is no longer known
as a child. Resource limits go down to all descendants and are shown in /proc. Linux has had no use for the one on the
number of file locks since 2.4, so its soft value names the runner, and its hard one the member's first process.
"""

import contextlib
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from castmates.linux.end_with_parent import adopt_orphans, end_with_parent
from castmates.linux.kernel_files import read_kernel
from castmates.linux.owner import maker_of_folder
from castmates.linux.processes import Family, Process, children_of, name_of, read_process, read_table, send, threads_of

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


class Adoption:
    """As long as it lasts this process adopts the orphans of members, so that no descendant leaves it, root's included.

    A session cannot be entered from outside. So who descends from us and is in another session than ours is a member's,
    whatever it did to its parents, its mark or its control groups; or it was there before.
    """

    def __init__(self) -> None:
        self._adopted_before = adopt_orphans(True)
        self._there_before = {process.pid for process in read_table().values() if process.parent == os.getpid()}

    def reap(self, launched: Collection[int]) -> None:
        """Wait for orphans that have ended: nobody else does, and they count as processes of their member till then."""
        me = os.getpid()
        with contextlib.suppress(OSError):  # a kernel without the list of children
            children = {child for tid in threads_of(me) for child in children_of(me, tid)}
            for pid in children - self._there_before - set(launched):
                process = read_process(pid)
                if process and not process.alive and is_ours(pid):
                    os.waitpid(pid, os.WNOHANG)

    def end(self, launched: Collection[int], timeout_s: float) -> list[str]:
        """Kill who is left of members, once these were ended in all ways that are known; return who that was."""
        found: list[str] = []
        deadline = time.monotonic() + timeout_s
        while (left := self._left(set(launched))) and time.monotonic() < deadline:
            found = found or [f"{one.pid} ({name_of(one.pid)})" for one in left if one.parent == os.getpid()]
            send([one.pid for one in left], signal.SIGKILL)
            time.sleep(0.005)
        adopt_orphans(self._adopted_before)
        return found

    def _left(self, launched: set[int]) -> list[Process]:
        table, me = read_table(), os.getpid()
        children: dict[int, list[Process]] = {}
        for process in table.values():
            children.setdefault(process.parent, []).append(process)
        queue = [one for one in children.get(me, []) if one.pid not in self._there_before]
        left: list[Process] = []
        while queue:
            process = queue.pop()
            queue += children.get(process.pid, [])
            if process.session == os.getsid(0):
                continue
            if process.alive:
                left.append(process)
            elif process.parent == me and process.pid not in launched:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return left
