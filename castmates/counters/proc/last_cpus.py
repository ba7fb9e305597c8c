"""Where the threads of members ran: the CPU that each was last on, at both edges of a window.

An allowed mask shows where a thread may run now; this shows where it was, also for the frozen. What happened between
the edges shows in the count of migrations (perf), where it can be had.
"""

import time

from castmates.counters.edges import BetweenEdges
from castmates.linux.processes import children_of, parse_stat, thread_stat_line, threads_of
from castmates.protocols import Sample

Threads = dict[int, int]  # thread -> the CPU that it ran on last


class Places(BetweenEdges[dict[str, Threads]]):
    """Reads the CPU of every thread of every member, frozen ones included."""

    name = "places"

    def _look(self) -> dict[str, Threads]:
        """Those who run; where the frozen ran last is seen at the close."""
        return {name: last_cpus(self._members[name]) for name in self._active}

    def _between(self, opening: dict[str, Threads], closing: dict[str, Threads]) -> list[Sample]:
        """A sample for each CPU that a member was seen on, its number as the value."""
        frozen = {name: last_cpus(pid) for name, pid in self._members.items() if name not in closing}
        now = time.monotonic_ns()
        samples = []
        for name, after in (closing | frozen).items():
            before = opening.get(name, {})
            seen = {*before.values(), *after.values()}
            samples += [Sample(now, self.name, name, "last_cpu", float(cpu)) for cpu in sorted(seen)]
            if name in opening:
                moved = sum(before[thread] != cpu for thread, cpu in after.items() if thread in before)
                samples.append(Sample(now, self.name, name, "threads_moved", float(moved), "a lower bound"))
        return samples

    def about(self) -> dict[str, str]:
        """Describe what is read."""
        return {"last_cpu": "field 39 of /proc/<pid>/task/<tid>/stat of every thread, at both edges"}


def last_cpus(leader: int) -> Threads:
    """Read where every thread of a process and of its descendants ran last; who ends meanwhile is left out."""
    threads: Threads = {}
    queue = [leader]
    while queue:
        pid = queue.pop()
        for tid in threads_of(pid):
            try:
                fields = parse_stat(thread_stat_line(pid, tid))[1]
                queue += children_of(pid, tid)
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                threads[tid] = int(fields[36])
    return threads
