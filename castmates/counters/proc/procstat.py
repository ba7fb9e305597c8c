"""What /proc shows of a window beside CPU time: faults and context switches of each member's whole process tree."""

import time
from dataclasses import dataclass, field

from castmates.counters.edges import BetweenEdges
from castmates.linux.host import swapped_pages
from castmates.linux.processes import children_of, parse_stat, stat_line, switches_of, threads_of
from castmates.protocols import Sample

_ENDED = "the member has ended"


@dataclass(slots=True)
class Tree:
    """The counts of one member's process tree at one edge."""

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
    swap: dict[str, int]
    trees: dict[str, Tree]


class ProcStat(BetweenEdges[Edge]):
    """Counts context switches, faults and swapping between two edges, from /proc alone."""

    name = "procstat"

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        samples = [
            Sample(closing.t_ns, self.name, "host", metric, closing.swap[metric] - before)
            for metric, before in opening.swap.items()
        ]
        for member, before_tree in opening.trees.items():
            differences = tree_difference(before_tree, closing.trees[member])
            samples += [
                Sample(closing.t_ns, self.name, member, metric, value, note)
                for metric, (value, note) in differences.items()
            ]
        return samples

    def about(self) -> dict[str, str]:
        """Describe what is read."""
        return {
            "members": "faults from /proc/<pid>/stat; context switches from every thread's status",
            "swapping": "pswpin and pswpout of the whole host, in pages",
        }

    def _look(self) -> Edge:
        trees = {member: read_tree(self._members[member]) for member in self._active}
        return Edge(time.monotonic_ns(), swapped_pages(), trees)


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
        except OSError:
            continue
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
    metrics = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
    if not (before.alive and after.alive):
        return dict.fromkeys(metrics, (None, _ENDED))
    differences: dict[str, tuple[float | None, str]] = {}
    for metric in metrics[:2]:
        value = getattr(after, metric) - getattr(before, metric)
        unwaited = "a process of the member ended and its parent did not wait for it"
        differences[metric] = (value, "") if value >= 0 else (None, unwaited)
    lost = len(before.switches.keys() - after.switches.keys())
    note = f"a lower bound: {lost} threads ended in the window" if lost else ""
    for column, metric in enumerate(metrics[2:]):
        total = sum(n[column] - before.switches.get(tid, (0, 0))[column] for tid, n in after.switches.items())
        differences[metric] = (total, note)
    return differences
