"""The machine's processes and threads, as far as resctrl knows them: who has which CLOSID and RMID."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from castmates.rdt.fake.texts import refusal


@dataclass(eq=False, slots=True)
class Thread:
    """One thread; a process's first thread has its pid."""

    tid: int
    pid: int
    uid: int
    gid: int
    closid: int = 0
    rmid: int = 0


class Processes:
    """All of them; init (1) and kthreadd (2) are there from the beginning."""

    def __init__(self) -> None:
        self._threads: dict[int, dict[int, Thread]] = {}  # pid -> tid -> thread, in the order of their births
        for pid in (1, 2):
            self._threads[pid] = {pid: Thread(pid, pid, 0, 0)}

    def fork(self, parent: int = 1, pid: int | None = None, uid: int | None = None) -> int:
        """Begin a process that inherits its parent thread's groups, and its user unless one is given."""
        born = self._inherit(parent, self._number(pid), uid)
        born.pid = born.tid
        self._threads[born.pid] = {born.tid: born}
        return born.pid

    def clone(self, creator: int, tid: int | None = None) -> int:
        """Begin a thread in the process of the one that creates it, whose groups it inherits."""
        born = self._inherit(creator, self._number(tid), None)
        self._threads[born.pid][born.tid] = born
        return born.tid

    def exit(self, tid: int) -> None:
        """End a thread; a process ends with all its threads when it is its first one."""
        thread = self.thread(tid)
        if thread.tid == thread.pid:
            del self._threads[thread.pid]
        else:
            del self._threads[thread.pid][tid]

    def thread(self, tid: int) -> Thread:
        """Find a thread by its number."""
        thread = next((threads[tid] for threads in self._threads.values() if tid in threads), None)
        if thread is None:
            raise refusal(errno.ESRCH)
        return thread

    def threads(self, pid: int) -> list[int]:
        """Name the threads of a process: /proc/<pid>/task."""
        if pid not in self._threads:
            raise refusal(errno.ENOENT)
        return list(self._threads[pid])

    def __iter__(self) -> Iterator[Thread]:
        return (thread for threads in self._threads.values() for thread in threads.values())

    def _inherit(self, parent: int, tid: int, uid: int | None) -> Thread:
        source = self.thread(parent)
        user, group = (source.uid, source.gid) if uid is None else (uid, uid)
        return Thread(tid, source.pid, user, group, source.closid, source.rmid)

    def _number(self, wanted: int | None) -> int:
        tids = {thread.tid for thread in self}
        if wanted is None:
            return max(tids) + 1
        if wanted in tids:
            raise refusal(errno.EEXIST)
        return wanted
