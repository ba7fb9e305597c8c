"""What /proc shows of a window: the time of each CPU, and the work of each member's whole process tree."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from castmates.linux.host import cpu_ticks, swapped_pages
from castmates.linux.processes import children_of, parse_stat, stat_line, switches_of, threads_of
from castmates.protocols import Sample

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Columns of a "cpuN" line of /proc/stat that make up each metric; guest time is contained in user time.
_CPU_COLUMNS = {"user_s": (1, 2), "system_s": (3,), "idle_s": (4, 5), "irq_s": (6, 7), "steal_s": (8,)}
_BUSY_COLUMNS = (1, 2, 3, 6, 7)
_ENDED = "the member has ended"


@dataclass(slots=True)
class Tree:
    """The counts of one member's process tree at one edge."""

    cpu_s: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)  # thread -> voluntary, involuntary

    @property
    def alive(self) -> bool:
        """False where not one thread was found."""
        return bool(self.switches)


@dataclass(slots=True)
class Edge:
    """Everything that is read at one edge of a window."""

    t_ns: int
    cpus: dict[int, list[bytes]]
    swap: dict[str, int]
    trees: dict[str, Tree]
    runner_ns: int  # CPU time of this very process


class ProcStat:
    """Counts CPU time, context switches, faults and swapping between two edges, from /proc alone."""

    name = "procstat"

    def __init__(self, cpus: Sequence[int], around: Mapping[str, Sequence[int]] | None = None) -> None:
        self._cpus = tuple(cpus)
        self._around = {place: tuple(beside) for place, beside in (around or {}).items()}
        self._watched = {*self._cpus}.union(*self._around.values())
        self._members: dict[str, int] = {}
        self._opening: Edge | None = None

    def attach(self, members: Mapping[str, int]) -> None:
        """Remember whom to watch."""
        self._members = dict(members)

    def start(self, active: Sequence[str]) -> None:
        """Read the opening edge."""
        self._opening = self._look(active)

    def stop(self) -> list[Sample]:
        """Read the closing edge and return the differences."""
        opening, self._opening = self._opening, None
        if opening is None:
            return []
        closing = self._look(list(opening.trees))
        samples = self._cpu_samples(opening, closing) + self._around_samples(opening, closing)
        runner_s = (closing.runner_ns - opening.runner_ns) / 1e9
        samples.append(Sample(closing.t_ns, self.name, "runner", "cpu_s", runner_s))
        for metric, before in opening.swap.items():
            samples.append(Sample(closing.t_ns, self.name, "host", metric, closing.swap[metric] - before))
        for member, before_tree in opening.trees.items():
            differences = tree_difference(before_tree, closing.trees[member])
            samples += [
                Sample(closing.t_ns, self.name, member, metric, value, note)
                for metric, (value, note) in differences.items()
            ]
        return samples

    def close(self) -> None:
        """Forget everybody."""
        self._members, self._opening = {}, None

    def about(self) -> dict[str, str]:
        """Describe what is read and how finely."""
        return {
            "cpu time": f"/proc/stat of CPUs {','.join(map(str, self._cpus))}, in ticks of {_TICK_S * 1e3:g} ms;"
            " idle_s contains waiting for input and output",
            "around the block": ", ".join(f"{len(cpus)} CPUs of {place}" for place, cpus in self._around.items())
            or "no other CPU shares a last-level cache with the block",
            "members": "process CPU clocks in ns, and what parents waited for in ticks; faults from"
            " /proc/<pid>/stat; context switches from every thread's status",
            "swapping": "pswpin and pswpout of the whole host, in pages",
        }

    def _look(self, active: Sequence[str]) -> Edge:
        trees = {member: read_tree(self._members[member]) for member in active}
        swap = swapped_pages()
        return Edge(time.monotonic_ns(), cpu_ticks(self._watched), swap, trees, time.process_time_ns())

    def _cpu_samples(self, opening: Edge, closing: Edge) -> list[Sample]:
        samples = []
        for cpu in self._cpus:
            before, after = opening.cpus.get(cpu), closing.cpus.get(cpu)
            for metric, columns in _CPU_COLUMNS.items():
                value = _passed(before, after, columns) if before and after else None
                note = "" if value is not None else "this CPU is offline"
                samples.append(Sample(closing.t_ns, self.name, f"cpu{cpu}", metric, value, note))
        return samples

    def _around_samples(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Return how busy the CPUs around the block were, those that are offline left out."""
        samples = []
        for place, beside in self._around.items():
            both = [cpu for cpu in beside if cpu in opening.cpus and cpu in closing.cpus]
            busy = sum(_passed(opening.cpus[cpu], closing.cpus[cpu], _BUSY_COLUMNS) for cpu in both)
            samples.append(Sample(closing.t_ns, self.name, place, "neighbours_busy_s", busy, f"{len(both)} CPUs"))
        return samples


def _passed(before: list[bytes], after: list[bytes], columns: Sequence[int]) -> float:
    # Idle time may run backwards by a tick in the kernel's own books.
    return max(0, sum(int(after[c]) - int(before[c]) for c in columns)) * _TICK_S


def read_tree(leader: int) -> Tree:
    """Read a process and all its descendants; who ends meanwhile is left out."""
    tree = Tree()
    queue = [leader]
    while queue:
        pid = queue.pop()
        try:
            fields = parse_stat(stat_line(pid))[1]
            if fields[0] in b"ZX" and int(fields[17]) <= 1:
                continue
            # The process's CPU clock counts nanoseconds and keeps the time of threads that have ended;
            # children that were waited for are in their parent's cutime and cstime.
            waited = (int(fields[13]) + int(fields[14])) * _TICK_S
            own = time.clock_gettime_ns((~pid << 3) | 2) / 1e9
        except OSError:
            continue
        tree.cpu_s += own + waited
        tree.minor_faults += int(fields[7]) + int(fields[8])
        tree.major_faults += int(fields[9]) + int(fields[10])
        for tid in threads_of(pid):
            try:
                tree.switches[tid] = switches_of(pid, tid)
                queue += children_of(pid, tid)
            except OSError:
                continue
    return tree


def tree_difference(before: Tree, after: Tree) -> dict[str, tuple[float | None, str]]:
    """Subtract two edges: metric -> value and note, with no value where there is none to give."""
    metrics = ("cpu_s", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
    if not (before.alive and after.alive):
        return dict.fromkeys(metrics, (None, _ENDED))
    differences: dict[str, tuple[float | None, str]] = {}
    for metric in metrics[:3]:
        value = getattr(after, metric) - getattr(before, metric)
        unwaited = "a process of the member ended and its parent did not wait for it"
        differences[metric] = (value, "") if value >= 0 else (None, unwaited)
    lost = len(before.switches.keys() - after.switches.keys())
    note = f"a lower bound: {lost} threads ended in the window" if lost else ""
    for column, metric in enumerate(metrics[3:]):
        total = sum(n[column] - before.switches.get(tid, (0, 0))[column] for tid, n in after.switches.items())
        differences[metric] = (total, note)
    return differences
