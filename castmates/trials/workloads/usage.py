"""What a workload's processes take of the machine: threads, the CPUs that these may run on, memory."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from castmates.linux.processes import TICK_S, parse_stat, status_of, thread_stat_line, threads_of

BUSY = 0.2  # share of the busiest thread's CPU time that a thread must have had to count as busy
BUSY_S = 2 * TICK_S  # and at least so much, because the kernel counts in ticks


@dataclass
class Usage:
    """The most that was seen over several looks."""

    threads: int = 0
    memory: int = 0  # bytes: the sum over the processes of what each held at most
    cpus: set[int] = field(default_factory=set)  # that some thread may run on
    _first: dict[int, float] = field(default_factory=dict)  # CPU seconds of each thread when it was first seen
    _last: dict[int, float] = field(default_factory=dict)
    _alive: list[frozenset[int]] = field(default_factory=list)  # the threads of each look

    def look(self, pids: Iterable[int]) -> None:
        """Look at these processes once more."""
        threads = [(pid, tid) for pid in pids for tid in threads_of(pid)]
        self.threads = max(self.threads, len(threads))
        self._alive.append(frozenset(tid for _, tid in threads))
        self.memory = max(self.memory, sum(_peak_memory(pid) for pid in {pid for pid, _ in threads}))
        for pid, tid in threads:
            try:
                self.cpus |= os.sched_getaffinity(tid)
                self._last[tid] = seconds = _cpu_seconds(pid, tid)
            except OSError:  # it has ended
                continue
            self._first.setdefault(tid, seconds)

    def busy(self) -> int:
        """Return how many threads that lived at the same time did a good part of what the busiest one did."""
        spent = {tid: last - self._first[tid] for tid, last in self._last.items()}
        least = max(BUSY_S, BUSY * max(spent.values(), default=0.0))
        return max((sum(spent.get(tid, 0.0) >= least for tid in alive) for alive in self._alive), default=0)


def _cpu_seconds(pid: int, tid: int) -> float:
    fields = parse_stat(thread_stat_line(pid, tid))[1]
    return (int(fields[11]) + int(fields[12])) * TICK_S


def _peak_memory(pid: int) -> int:
    """Return the most that a process had in memory at a time; 0 where it has ended."""
    words = status_of(pid).get("VmHWM", "").split()
    return int(words[0]) * 1024 if words else 0
