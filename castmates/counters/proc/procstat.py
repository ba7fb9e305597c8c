"""What /proc shows of a window beside CPU time: faults and context switches of each member's whole process tree."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.linux.host import cpu_ticks, swapped_pages
from castmates.linux.kernel_files import CPU_DIR, HIGHEST, LOWEST, domains, read_int, read_text
from castmates.linux.processes import (
    TICK_S,
    children_of,
    parse_stat,
    stat_line,
    switches_of,
    thread_stat_line,
    threads_of,
)
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


# The time of CPUs and of members, cheap enough to be read at both edges of every slice.

# Columns of a "cpuN" line of /proc/stat that make up each metric; guest time is contained in user time.
_CPU_COLUMNS = {"user_s": (1, 2), "system_s": (3,), "idle_s": (4, 5), "irq_s": (6, 7), "steal_s": (8,)}
_BUSY_COLUMNS = (1, 2, 3, 6, 7)
_OFFLINE = "this CPU is offline"
_UNWAITED = "a process of the member ended and its parent did not wait for it"


@dataclass(slots=True)
class _CputimeEdge:
    """Everything that is read at one edge of a slice."""

    t_ns: int
    cpus: dict[int, list[bytes]]
    members: dict[str, int | None]  # CPU time in ns; None where no process is left
    runner_ns: int  # CPU time of this very process


class CpuTime(BetweenEdges[_CputimeEdge]):
    """Counts CPU time between two edges: of CPUs in clock ticks, of members in nanoseconds."""

    name = "cputime"
    every_slice = True

    def __init__(self, cpus: Sequence[int], around: Mapping[str, Sequence[int]] | None = None) -> None:
        self._cpus = tuple(cpus)
        self._around = {place: tuple(beside) for place, beside in (around or {}).items()}
        self._watched = {*self._cpus}.union(*self._around.values())

    def _between(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
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

    def _look(self) -> _CputimeEdge:
        members = {member: cpu_ns_of(self._members[member]) for member in self._active}
        return _CputimeEdge(time.monotonic_ns(), cpu_ticks(self._watched), members, time.process_time_ns())

    def _of_cpus(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
        samples = []
        for cpu in self._cpus:
            before, after = opening.cpus.get(cpu), closing.cpus.get(cpu)
            for metric, columns in _CPU_COLUMNS.items():
                value = _passed(before, after, columns) if before and after else None
                note = "" if value is not None else _OFFLINE
                samples.append(Sample(closing.t_ns, self.name, f"cpu{cpu}", metric, value, note))
        return samples

    def _of_neighbours(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
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
