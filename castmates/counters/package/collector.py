"""Energy, memory controllers and uncore clock of the launch's packages, read at both edges; they belong to nobody."""

import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from castmates.counters.edges import BetweenEdges
from castmates.counters.events.groups import FULL, Reading, explain
from castmates.counters.events.groups import explain as explain_refusal
from castmates.counters.package import sources
from castmates.counters.package.sources import Unit, Wanted, Zone, package_of, packages_of, zones
from castmates.errors import CastmatesError
from castmates.linux.kernel_files import CURRENT, domains, read_int
from castmates.linux.perf_event import PERF_DEVICES, Opener, Target, open_event, paranoid, read_group
from castmates.protocols import Sample

# Events of units, opened for whole packages: each by itself, because units have few counters and do not share them.


@dataclass(frozen=True, slots=True)
class Count:
    """One event of one unit on one package."""

    wanted: Wanted
    package: int
    fd: int

    def read(self) -> Reading | None:
        """Read it; None where the kernel gives no number."""
        try:
            numbers = read_group(self.fd, 1)
        except OSError:  # its CPU went offline, for instance
            return None
        return None if numbers is None else Reading(numbers[2], numbers[0], numbers[1])


@dataclass
class OpenedUnits:
    """Everything that is counted of packages, and what was refused."""

    counts: list[Count] = field(default_factory=list)
    refused: dict[tuple[int, str], str] = field(default_factory=dict)  # package and metric -> why it has no number

    def close(self) -> None:
        """Let go of all of them; safe to call twice."""
        for count in self.counts:
            os.close(count.fd)
        self.counts.clear()


def open_units(events: Iterable[tuple[Wanted, int, int]], opener: Opener = open_event) -> OpenedUnits:
    """Open each event for its package, through this CPU; a quantity that lacks a part of itself is none."""
    opened = OpenedUnits()
    for event, package, cpu in events:
        try:
            fd = opener(event.attr, Target(-1, cpu), -1, 0)
        except OSError as error:
            opened.refused.setdefault((package, event.metric), f"{event.unit.name}: {_explain(error)}")
            continue
        opened.counts.append(Count(event, package, fd))
    whole = [count for count in opened.counts if (count.package, count.wanted.metric) not in opened.refused]
    for count in opened.counts:
        if count not in whole:
            os.close(count.fd)
    opened.counts = whole
    return opened


def _explain(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"perf is refused for whole packages (kernel.perf_event_paranoid is {paranoid()}, and 0 or lower, or "
            "CAP_PERFMON, is needed)"
        )
    if error.errno == errno.EINVAL:
        return "the kernel refuses this event (EINVAL)"
    return str(explain_refusal(error))


NAME = "package"
Rates = dict[tuple[int, str], tuple[float | None, str]]  # package and metric -> value and note


def subject_of(package: int) -> str:
    """Return what a package is called in the tables."""
    return f"package{package}"


@dataclass(slots=True)
class Edge:
    """Everything that is read at one edge."""

    t_ns: int
    counts: list[Reading | None] = field(default_factory=list)
    energies: list[int | None] = field(default_factory=list)
    clocks: Mapping[int, list[float]] = field(default_factory=dict)


class Packages(BetweenEdges[Edge]):
    """Reads what belongs to the packages of a launch, whoever causes it: other programs too."""

    name = NAME

    def __init__(self, cpus: Sequence[int], root: Path = Path("/"), opener: Opener = open_event) -> None:
        self._root, self._opener = root, opener
        self._packages = packages_of(tuple(cpus), root)
        self._wanted, self._problems = sources.wanted(root)
        self._clock = UncoreClock(self._packages, root)
        self._opened = OpenedUnits()
        self._zones: list[Zone] = []

    def available(self) -> str | None:
        """Explain why there is nothing to read of a package; None where there is something."""
        if not self._packages:
            return "this kernel does not show which package a CPU is in"
        if self._wanted or self._clock.read() or zones(self._packages, self._root):
            return None
        return (
            "this machine shows neither energy nor memory controllers nor an uncore clock (virtual machines have none, "
            "and perf needs the units power and uncore_imc, amd_umc, amd_df or arm_cmn)"
        )

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002 (a package is everybody's)
        """Open the counters."""
        self.close()
        self._opened = open_units(self._events(), self._opener)
        counted = {(count.package, count.wanted.metric) for count in self._opened.counts}
        self._zones = [zone for zone in zones(self._packages, self._root) if (zone.package, zone.metric) not in counted]
        for zone in self._zones:
            self._opened.refused.pop((zone.package, zone.metric), None)

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Rates: watts, bytes a second, GHz."""
        seconds = (closing.t_ns - opening.t_ns) / 1e9
        rates = {**self._of_units(opening, closing, seconds), **self._of_zones(opening, closing, seconds)}
        refused: Rates = {key: (None, why) for key, why in self._opened.refused.items()}
        samples = [
            Sample(closing.t_ns, NAME, subject_of(package), metric, value, note)
            for (package, metric), (value, note) in sorted((refused | rates).items())
        ]
        return samples + self._of_clocks(opening, closing)

    def close(self) -> None:
        """Let go of the counters; safe to call twice."""
        self._opened.close()
        super().close()

    def about(self) -> dict[str, str]:
        """Describe what is counted, through what, and what was refused."""
        counted: dict[str, dict[str, None]] = {}
        for count in self._opened.counts:
            counted.setdefault(count.wanted.metric, {})[f"{count.wanted.unit.name}/{count.wanted.name}/"] = None
        facts = {metric: f"{sources.MEANINGS[metric]}: {' + '.join(names)}" for metric, names in counted.items()}
        for zone in self._zones:
            facts[zone.metric] = f"{sources.MEANINGS[zone.metric]}: {zone.file.parent}"
        why = self._clock.why_not()
        facts[METRIC] = why or f"mean of {CURRENT} at both edges, over the package's domains"
        facts |= {f"{metric} of package {package}": why for (package, metric), why in self._opened.refused.items()}
        if self._problems:
            facts["not understood"] = "; ".join(self._problems)
        return {"packages": ", ".join(map(str, self._packages)), **facts}

    def _events(self) -> list[tuple[sources.Wanted, int, int]]:
        """List each event with every package of the launch that its unit counts, and the CPU through which it does."""
        listed: list[tuple[sources.Wanted, int, int]] = []
        for event in self._wanted:
            packages = [
                (package, cpu) for cpu in event.unit.cpus if (package := package_of(cpu, self._root)) is not None
            ]
            if event.once:
                packages = list(dict(reversed(packages)).items())
            listed += [(event, package, cpu) for package, cpu in packages if package in self._packages]
        return listed

    def _look(self) -> Edge:
        return Edge(
            time.monotonic_ns(),
            [count.read() for count in self._opened.counts],
            [read_int(zone.file) for zone in self._zones],
            self._clock.read(),
        )

    def _of_units(self, opening: Edge, closing: Edge, seconds: float) -> Rates:
        """Add up the units of each package; what one of them lacks leaves the sum unknown."""
        sums: Rates = {}
        for count, before, after in zip(self._opened.counts, opening.counts, closing.counts, strict=True):
            key = count.package, count.wanted.metric
            total, note = sums.get(key, (0.0, ""))
            amount, why = _between(count, before, after)
            together = None if total is None or amount is None else total + amount / seconds
            sums[key] = together, note or why
        return sums

    def _of_zones(self, opening: Edge, closing: Edge, seconds: float) -> Rates:
        sums: Rates = {}
        for zone, before, after in zip(self._zones, opening.energies, closing.energies, strict=True):
            key = zone.package, zone.metric
            total, note = sums.get(key, (0.0, ""))
            if total is None or before is None or after is None:
                sums[key] = None, note or f"{zone.file} could not be read"
            else:
                sums[key] = total + zone.joules(before, after) / seconds, ""
        return sums

    def _of_clocks(self, opening: Edge, closing: Edge) -> list[Sample]:
        samples = []
        for package in sorted(opening.clocks.keys() & closing.clocks.keys()):
            seen = [*opening.clocks[package], *closing.clocks[package]]
            mean, note = sum(seen) / len(seen), f"{len(seen)} readings"
            samples.append(Sample(closing.t_ns, NAME, subject_of(package), METRIC, mean, note))
        return samples


def _between(count: Count, before: Reading | None, after: Reading | None) -> tuple[float | None, str]:
    """Return what one counter came to, scaled up where other events held the unit's counters for a part of the time."""
    where = count.wanted.unit.name
    if before is None or after is None:
        return None, f"{where}: the kernel gave no count"
    counted, enabled, running = (
        after.count - before.count,
        after.enabled - before.enabled,
        after.running - before.running,
    )
    if running <= 0 or enabled <= 0:
        return None, f"{where}: other events held its counters for the whole time"
    share = running / enabled
    note = f"{where}: counted for {share:.1%} of the time, and scaled" if share < FULL else ""
    return counted * count.wanted.scale * enabled / running, note


# The clock of the uncore, as Intel's driver shows it to root: a moment's, so that both edges are read.

METRIC = "uncore_ghz"


class UncoreClock:
    """Reads the clock of each package's domains."""

    def __init__(self, packages: Sequence[int], root: Path = Path("/")) -> None:
        found = domains(root).items()
        self._domains = {folder: package for folder, package in found if package is not None and package in packages}

    def read(self) -> dict[int, list[float]]:
        """Return the clocks of each package's domains in GHz; of a package that lacks one, nothing."""
        clocks: dict[int, list[float]] = {}
        lacking = set()
        for folder, package in self._domains.items():
            khz = read_int(folder / CURRENT)
            if khz is None:
                lacking.add(package)
            else:
                clocks.setdefault(package, []).append(khz / 1e6)
        return {package: each for package, each in clocks.items() if package not in lacking}

    def why_not(self) -> str:
        """Explain why there is no clock; "" where there is one."""
        if not self._domains:
            return "this kernel shows no uncore clock (intel_uncore_frequency is Intel's)"
        return "" if self.read() else f"{CURRENT} is not shown: only root may read it, where the kernel has it"


# The clock of the launch's CPUs while they run: APERF over MPERF, where perf's `msr` unit counts them.
#
# Unlike scaling_cur_freq, which is a moment's, it is the mean over all that ran between the edges. MPERF counts at the
# time stamp counter's rate while a CPU is not halted, APERF at its real clock.

_BUSY_CLOCK_NAME = "busy_clock"
GHZ, RUNNING = "busy_ghz", "unhalted_s"
EVENTS = ("tsc", "aperf", "mperf")
NONE_HERE = "this kernel or machine counts no APERF and MPERF through perf (virtual machines have none)"
Clocks = dict[int, dict[str, Reading]]  # CPU -> event -> count


class BusyClock(BetweenEdges[Clocks]):
    """Reads each CPU's mean clock while it ran, whoever ran there."""

    name = _BUSY_CLOCK_NAME

    def __init__(self, cpus: Sequence[int], root: Path = Path("/"), opener: Opener = open_event) -> None:
        self._cpus, self._opener = tuple(cpus), opener
        self._unit = msr_unit(root)
        self._fds: dict[int, dict[str, int]] = {}  # CPU -> event -> descriptor
        self._refused = ""

    def available(self) -> str | None:
        """Explain why there is nothing to count; None where there is something."""
        try:
            if self._unit is None or any(self._unit.named(event) is None for event in EVENTS):
                return NONE_HERE
            self.attach({})
        except CastmatesError as problem:  # of a kernel whose files castmates cannot read
            return str(problem)
        why = self._refused
        self.close()
        return why or None

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002 (a clock is a CPU's)
        """Open the counters of every CPU; none where one is refused."""
        self.close()
        if self._unit is None:
            return
        attrs = {event: self._unit.attr(terms) for event in EVENTS if (terms := self._unit.named(event)) is not None}
        try:
            for cpu in self._cpus:
                self._fds[cpu] = {}
                for event, attr in attrs.items():
                    self._fds[cpu][event] = self._opener(attr, Target(-1, cpu), -1, 0)
        except OSError as error:
            self.close()
            self._refused = str(explain(error))

    def _between(self, opening: Clocks, closing: Clocks) -> list[Sample]:
        """A CPU that was halted all the time had no clock."""
        now = time.monotonic_ns()
        samples = []
        for cpu, after in closing.items():
            if (before := opening.get(cpu)) is None:
                continue
            tsc, aperf, mperf = (after[event].count - before[event].count for event in EVENTS)
            enabled_s = (after["tsc"].enabled - before["tsc"].enabled) / 1e9
            rate = tsc / enabled_s if enabled_s > 0 else 0.0
            running_s = mperf / rate if rate > 0 else 0.0
            ghz = aperf / mperf * rate / 1e9 if mperf > 0 and rate > 0 else None
            samples.append(Sample(now, _BUSY_CLOCK_NAME, f"cpu{cpu}", RUNNING, running_s))
            samples.append(
                Sample(now, _BUSY_CLOCK_NAME, f"cpu{cpu}", GHZ, ghz, "" if ghz is not None else "it did not run")
            )
        return samples

    def close(self) -> None:
        """Let go of the counters; safe to call twice."""
        for fds in self._fds.values():
            for fd in fds.values():
                os.close(fd)
        self._fds = {}
        super().close()

    def about(self) -> dict[str, str]:
        """Describe what is counted."""
        words = "APERF ÷ MPERF × time stamp counter of each CPU, whoever ran there"
        return {GHZ: f"none: {self._refused}" if self._refused else words}

    def _look(self) -> Clocks:
        edge = {}
        for cpu, fds in self._fds.items():
            try:
                numbers = {event: read_group(fd, 1) for event, fd in fds.items()}
            except OSError:  # the CPU went offline, for instance
                continue
            known = {event: Reading(raw[2], raw[0], raw[1]) for event, raw in numbers.items() if raw is not None}
            if len(known) == len(EVENTS):
                edge[cpu] = known
        return edge


def msr_unit(root: Path) -> Unit | None:
    """Return perf's unit of model-specific registers, which has no cpumask: it counts on any CPU."""
    folder = root / PERF_DEVICES / "msr"
    kind = read_int(folder / "type")
    return None if kind is None else Unit("msr", folder, kind, ())
