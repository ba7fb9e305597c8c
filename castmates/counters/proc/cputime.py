"""The time of CPUs and of members, cheap enough to be read at both edges of every slice."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.counters.edges import BetweenEdges
from castmates.linux.host import cpu_ticks
from castmates.linux.processes import TICK_S, children_of, parse_stat, stat_line, threads_of
from castmates.protocols import Sample

# Columns of a "cpuN" line of /proc/stat that make up each metric; guest time is contained in user time.
_CPU_COLUMNS = {"user_s": (1, 2), "system_s": (3,), "idle_s": (4, 5), "irq_s": (6, 7), "steal_s": (8,)}
_BUSY_COLUMNS = (1, 2, 3, 6, 7)
_OFFLINE = "this CPU is offline"
_ENDED = "the member has ended"
_UNWAITED = "a process of the member ended and its parent did not wait for it"


@dataclass(slots=True)
class Edge:
    """Everything that is read at one edge of a slice."""

    t_ns: int
    cpus: dict[int, list[bytes]]
    members: dict[str, int | None]  # CPU time in ns; None where no process is left
    runner_ns: int  # CPU time of this very process


class CpuTime(BetweenEdges[Edge]):
    """Counts CPU time between two edges: of CPUs in clock ticks, of members in nanoseconds."""

    name = "cputime"
    every_slice = True

    def __init__(self, cpus: Sequence[int], around: Mapping[str, Sequence[int]] | None = None) -> None:
        self._cpus = tuple(cpus)
        self._around = {place: tuple(beside) for place, beside in (around or {}).items()}
        self._watched = {*self._cpus}.union(*self._around.values())

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        runner_s = (closing.runner_ns - opening.runner_ns) / 1e9
        samples = [*self._of_cpus(opening, closing), *self._of_neighbours(opening, closing)]
        samples.append(Sample(closing.t_ns, self.name, "runner", "cpu_s", runner_s))
        for member, before in opening.members.items():
            value, note = _difference(before, closing.members[member])
            samples.append(Sample(closing.t_ns, self.name, member, "cpu_s", value, note))
        return samples

    def about(self) -> dict[str, str]:
        """Describe what is read and how finely."""
        return {
            "cpu time": f"/proc/stat of CPUs {','.join(map(str, self._cpus))}, in ticks of {TICK_S * 1e3:g} ms;"
            " idle_s contains waiting for input and output",
            "around the launch": ", ".join(f"{len(cpus)} CPUs of {place}" for place, cpus in self._around.items())
            or "no other CPU shares a last-level cache with the launch",
            "members": "process CPU clocks in ns, and what parents waited for in ticks",
        }

    def _look(self) -> Edge:
        members = {member: cpu_ns_of(self._members[member]) for member in self._active}
        return Edge(time.monotonic_ns(), cpu_ticks(self._watched), members, time.process_time_ns())

    def _of_cpus(self, opening: Edge, closing: Edge) -> list[Sample]:
        samples = []
        for cpu in self._cpus:
            before, after = opening.cpus.get(cpu), closing.cpus.get(cpu)
            for metric, columns in _CPU_COLUMNS.items():
                value = _passed(before, after, columns) if before and after else None
                note = "" if value is not None else _OFFLINE
                samples.append(Sample(closing.t_ns, self.name, f"cpu{cpu}", metric, value, note))
        return samples

    def _of_neighbours(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Return how busy the CPUs around the launch were, those that are offline left out."""
        samples = []
        for place, beside in self._around.items():
            both = [cpu for cpu in beside if cpu in opening.cpus and cpu in closing.cpus]
            busy = sum(_passed(opening.cpus[cpu], closing.cpus[cpu], _BUSY_COLUMNS) for cpu in both)
            samples.append(Sample(closing.t_ns, self.name, place, "neighbours_busy_s", busy, f"{len(both)} CPUs"))
        return samples


def cpu_ns_of(leader: int) -> int | None:
    """Add up the CPU time of a process and all its descendants, ended ones included; None where no process is left.

    The clock of a process counts nanoseconds and keeps the time of threads that have ended; children that were waited
    for are in their parent's cutime and cstime.
    """
    total, queue, alive = 0, [leader], False
    while queue:
        pid = queue.pop()
        try:
            fields = parse_stat(stat_line(pid))[1]
            if fields[0] in b"ZX" and int(fields[17]) <= 1:
                continue
            own = time.clock_gettime_ns((~pid << 3) | 2)
        except OSError:
            continue
        alive = True
        total += own + round((int(fields[13]) + int(fields[14])) * TICK_S * 1e9)
        for tid in threads_of(pid):
            try:
                queue += children_of(pid, tid)
            except OSError:
                continue
    return total if alive else None


def _passed(before: list[bytes], after: list[bytes], columns: Sequence[int]) -> float:
    # Idle time may run backwards by a tick in the kernel's own books.
    return max(0, sum(int(after[c]) - int(before[c]) for c in columns)) * TICK_S


def _difference(before: int | None, after: int | None) -> tuple[float | None, str]:
    if before is None or after is None:
        return None, _ENDED
    return ((after - before) / 1e9, "") if after >= before else (None, _UNWAITED)
