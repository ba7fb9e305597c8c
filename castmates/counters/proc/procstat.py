"""What /proc shows of a window beside CPU time: faults and context switches of each member's whole process tree."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.linux.host import swapped_pages
from castmates.linux.kernel_files import CPU_DIR, HIGHEST, LOWEST, domains, read_int, read_text
from castmates.linux.processes import (
    living,
    parse_stat,
    switches_of,
    thread_stat_line,
    tree_of,
)
from castmates.protocols import Sample

ENDED = "the member has ended"
UNWAITED = "a process of the member ended and its parent did not wait for it"


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
    for pid, threads in tree_of(leader):
        if (fields := living(pid)) is None:
            continue
        tree.minor_faults += int(fields[7]) + int(fields[8])
        tree.major_faults += int(fields[9]) + int(fields[10])
        for tid in threads:
            try:
                tree.switches[tid] = switches_of(pid, tid)
            except OSError:
                continue
    return tree


def tree_difference(before: Tree, after: Tree) -> dict[str, tuple[float | None, str]]:
    """Subtract two edges: metric -> value and note, with no value where there is none to give."""
    metrics = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
    if not (before.alive and after.alive):
        return dict.fromkeys(metrics, (None, ENDED))
    differences: dict[str, tuple[float | None, str]] = {}
    for metric in metrics[:2]:
        value = getattr(after, metric) - getattr(before, metric)
        differences[metric] = (value, "") if value >= 0 else (None, UNWAITED)
    lost = len(before.switches.keys() - after.switches.keys())
    note = f"a lower bound: {lost} threads ended in the window" if lost else ""
    for column, metric in enumerate(metrics[2:]):
        total = sum(n[column] - before.switches.get(tid, (0, 0))[column] for tid, n in after.switches.items())
        differences[metric] = (total, note)
    return differences


# What of the machine must stay as at the launch's begin: governors, limits of clocks, CPUs online, being awake.
#
# A changed setting spoils every window from then on, so both edges are compared with the launch's begin. A lowered
# scaling_max_freq is no fault while the kernel cools the processor: that is throttling, which is an effect.

GOVERNOR = ("scaling_governor", "scaling_min_freq", "scaling_max_freq")
COOLED = "scaling_max_freq"
TURBO = ("intel_pstate/no_turbo", "cpufreq/boost")
COOLERS = ("Processor", "cpufreq", "thermal-cpufreq", "intel_powerclamp")

Settings = dict[str, str]  # what it is called -> its value


class Asleep(NamedTuple):
    """The least and the most time (ns) that the machine slept since it was started, as two clocks show."""

    least: int
    most: int


class _ConditionsEdge(NamedTuple):
    """What is read at one edge of a window."""

    asleep: Asleep
    settings: Settings
    offline: list[int]
    coolers: int  # devices that hold the processor back for heat


class Conditions(BetweenEdges[_ConditionsEdge]):
    """Holds the settings of the machine at both edges of a window against those at the launch's begin."""

    name = "conditions"

    def __init__(self, cpus: Sequence[int], root: Path = Path("/")) -> None:
        self._cpus = tuple(cpus)
        self._base = root / CPU_DIR
        self._coolers = [
            folder / "cur_state"
            for folder in sorted((root / "sys/class/thermal").glob("cooling_device*"))
            if (read_text(folder / "type") or "").startswith(COOLERS)
        ]
        self._uncore = {
            f"{name} of {folder.name}": folder / name for folder in domains(root) for name in (LOWEST, HIGHEST)
        }
        self._begin: Settings = {}

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002
        """Remember how the machine is set."""
        self._begin = self._look().settings  # without what cooling lowers: a launch may begin hot

    def _between(self, opening: _ConditionsEdge, closing: _ConditionsEdge) -> list[Sample]:
        """The notes name what is not as it was."""
        changed = [change for edge in (opening, closing) for change in changes(self._begin, edge.settings)]
        offline = sorted({*opening.offline, *closing.offline})
        now = time.monotonic_ns()
        metrics = [
            ("settings_changed", float(len(set(changed))), ", ".join(dict.fromkeys(changed))),
            ("cpus_offline", float(len(offline)), ", ".join(f"CPU {cpu}" for cpu in offline)),
            ("slept_s", slept_s(opening.asleep, closing.asleep), ""),
            ("coolers", float(max(opening.coolers, closing.coolers)), "cooling devices that held the processor back"),
        ]
        return [Sample(now, self.name, "host", metric, value, note) for metric, value, note in metrics]

    def about(self) -> dict[str, str]:
        """Describe how the machine was set when the launch began."""
        settings = [f"{what} {value}" for what, value in self._begin.items()]
        return {"at the launch's begin": ", ".join(settings) or "this kernel does not control the frequency"}

    def _look(self) -> _ConditionsEdge:
        offline = [cpu for cpu in self._cpus if read_int(self._base / f"cpu{cpu}/online") == 0]
        coolers = sum(bool(read_int(file)) for file in self._coolers)
        settings = self._settings()
        if coolers:
            settings = {what: word for what, word in settings.items() if not what.startswith(COOLED)}
        return _ConditionsEdge(read_asleep(), settings, offline, coolers)

    def _settings(self) -> Settings:
        files = {
            f"{name} of CPU {cpu}": self._base / f"cpu{cpu}/cpufreq/{name}" for cpu in self._cpus for name in GOVERNOR
        }
        files |= {name.partition("/")[2]: self._base / name for name in TURBO} | self._uncore
        return {what: word for what, file in files.items() if (word := read_text(file)) is not None}


def changes(before: Settings, after: Settings) -> list[str]:
    """Describe what is not as it was; what one of the edges does not show is not compared."""
    return [
        f"{what} was {value} and is {after[what]}"
        for what, value in before.items()
        if what in after and after[what] != value
    ]


def read_asleep() -> Asleep:
    """Read how far the clock that counts sleep is ahead of the one that does not."""
    first = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    last = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return Asleep(boot - last, boot - first)


def slept_s(before: Asleep, after: Asleep) -> float:
    """Return how long the machine slept in between, at least: 0 unless it is certain that it did."""
    return max(0, after.least - before.most) / 1e9


# Where the threads of members ran: the CPU that each was last on, at both edges of a window.
#
# An allowed mask shows where a thread may run now; this shows where it was, also for the frozen. What happened between
# the edges shows in the count of migrations (perf), where it can be had.

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
    last: Threads = {}
    for pid, threads in tree_of(leader):
        for tid in threads:
            try:
                fields = parse_stat(thread_stat_line(pid, tid))[1]
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                last[tid] = int(fields[36])
    return last
