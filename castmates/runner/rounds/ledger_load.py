"""What others took during a window: the hypervisor, programs on the launch's CPUs, and those around them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from castmates.machine.topology import Topology
from castmates.protocols import Sample
from castmates.study.budget_keys import Limits
from castmates.study.cpus import format_cpu_list
from castmates.study.reasons import NOT_VISIBLE, Reason, ReasonKind

# The samples of a slice or of a window, as its ledger asks for them.


class Readings:
    """Samples by subject and metric."""

    def __init__(self, samples: Sequence[Sample], seconds: float) -> None:
        self.seconds = seconds
        self.samples = samples
        self._values = {(sample.subject, sample.metric): sample for sample in samples}

    def get(self, subject: str, metric: str) -> float | None:
        """Return the value, or None where there is none."""
        sample = self._values.get((subject, metric))
        return None if sample is None else sample.value

    def note(self, subject: str, metric: str) -> str:
        """Return what stands beside the value."""
        sample = self._values.get((subject, metric))
        return "" if sample is None else sample.note

    def busy(self, cpus: Iterable[int]) -> float | None:
        """Seconds that programs and interrupts took on these CPUs."""
        return self._sum((f"cpu{cpu}", metric) for cpu in cpus for metric in ("user_s", "system_s", "irq_s"))

    def interrupts(self, cpus: Iterable[int]) -> float:
        """Seconds that interrupts took on these CPUs."""
        return self._sum((f"cpu{cpu}", "irq_s") for cpu in cpus) or 0.0

    def strays(self, places: Iterable[str]) -> float:
        """Seconds that members' processes took that had left their family."""
        return sum(self.get(place, "strays_s") or 0.0 for place in places)

    def last_cpus(self, member: str) -> set[int]:
        """Return the CPUs that some thread of the member ran on last, at either edge."""
        return {
            int(sample.value)
            for sample in self.samples
            if (sample.subject, sample.metric) == (member, "last_cpu") and sample.value is not None
        }

    def takers(self, places: Iterable[str]) -> list[tuple[float, str]]:
        """Others who took time at these places: seconds and name, who took most first."""
        wanted = set(places)
        took: dict[str, float] = {}
        for sample in self.samples:
            if sample.metric == "foreign_s" and sample.subject in wanted and sample.value is not None:
                took[sample.note] = took.get(sample.note, 0.0) + sample.value
        return sorted(((seconds, who) for who, seconds in took.items()), reverse=True)

    def _sum(self, keys: Iterable[tuple[str, str]]) -> float | None:
        parts = [self.get(*key) for key in keys]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


# What surrounds the CPUs of a launch: siblings that should be quiet, and the other CPUs of its caches and packages.


@dataclass(frozen=True, slots=True)
class Domain:
    """A last-level cache, or a package, that the launch uses."""

    name: str  # "l3:0", "package0"
    size: int  # online CPUs that share it
    neighbours: tuple[int, ...]  # those of them that are neither the launch's nor siblings of the launch's


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The CPUs beside those of a launch."""

    quiet: tuple[int, ...] = ()  # on a core of the launch, yet no member's
    domains: tuple[Domain, ...] = ()  # caches; none where the launch holds the whole domain
    packages: tuple[Domain, ...] = ()  # those with more neighbours than their caches have: a second ring
    caches: tuple[int, ...] = ()  # the last-level caches of the launch's packages, by their ids

    @property
    def neighbours(self) -> dict[str, tuple[int, ...]]:
        """The neighbouring CPUs by cache, and by package."""
        return {domain.name: domain.neighbours for domain in (*self.domains, *self.packages)}


def surroundings(topology: Topology, cpus: Collection[int]) -> Surroundings:
    """Find what lies beside these CPUs."""
    own = set(cpus)
    on_cores = {sibling for cpu in topology.cpus if cpu.id in own for sibling in cpu.siblings} | own
    domains = _with_neighbours(
        Domain(f"l{llc.level}:{llc.id}", len(llc.cpus), tuple(cpu for cpu in llc.cpus if cpu not in on_cores))
        for llc in topology.llcs
        if own & set(llc.cpus)
    )
    first_ring = {cpu for domain in domains for cpu in domain.neighbours}
    members: dict[int, list[int]] = {}
    for cpu in topology.cpus:
        if cpu.online and cpu.package is not None:
            members.setdefault(cpu.package, []).append(cpu.id)
    used = {number: there for number, there in members.items() if own & set(there)}
    packages = _with_neighbours(
        Domain(f"package{number}", len(there), tuple(cpu for cpu in there if cpu not in on_cores))
        for number, there in sorted(used.items())
    )
    near = {cpu for there in used.values() for cpu in there}
    return Surroundings(
        tuple(sorted(on_cores - own)),
        domains,
        tuple(package for package in packages if set(package.neighbours) - first_ring),
        tuple(llc.id for llc in topology.llcs if near & set(llc.cpus)),
    )


def _with_neighbours(domains: Iterable[Domain]) -> tuple[Domain, ...]:
    return tuple(domain for domain in domains if domain.neighbours)


TICK = 0.01  # seconds; the grain of /proc/stat
FORGIVEN = 2 * TICK


@dataclass(frozen=True)
class Load:
    """Where the launch is, and how much of it others may take."""

    places: Mapping[str, tuple[int, ...]]  # of everyone in the cast, frozen or not
    surroundings: Surroundings
    runner_cpus: frozenset[int]
    limits: Limits

    def reasons(self, active: Collection[str], readings: Readings) -> list[Reason]:
        """Every reason for which others' load spoils the window."""
        return [*self._steal(readings), *self._foreign(active, readings), *self._neighbours(readings)]

    def _steal(self, readings: Readings) -> list[Reason]:
        """On every CPU of the launch, also where no member runs: what is stolen there hides what happens there."""
        limit = self.limits.steal
        stolen = {cpu: readings.get(f"cpu{cpu}", "steal_s") or 0.0 for cpu in self._cpus()}
        stolen = {cpu: min(seconds, readings.seconds) for cpu, seconds in stolen.items()}
        # Ticks are coarse: a single one is no proof of anything, however short the window.
        stolen = {cpu: each for cpu, each in stolen.items() if each > max(limit * readings.seconds, 1.5 * TICK)}
        return [
            Reason(
                ReasonKind.STEAL,
                f"the hypervisor took {seconds / readings.seconds:.1%} of CPU {cpu} (limit {limit:.1%})",
            )
            for cpu, seconds in stolen.items()
        ]

    def _foreign(self, active: Collection[str], readings: Readings) -> list[Reason]:
        """Others' time beside a running member, and where it should be quiet: the frozen's CPUs, idle siblings."""
        own_cpus = {cpu for name in active for cpu in self.places[name]}
        watched = [(cpus, _together(names, readings)) for cpus, names in self._sharing(active)]
        watched += [((cpu,), 0.0) for cpu in sorted((self._cpus() | {*self.surroundings.quiet}) - own_cpus)]
        reasons = []
        for cpus, own in watched:
            busy = readings.busy(cpus)
            if busy is None:
                continue
            if own is None:
                unknown = f"how much of CPUs {format_cpu_list(cpus)} was the member's own is not known"
                reasons.append(Reason(ReasonKind.UNPROVEN, unknown))
                continue
            # Ticks are coarse: two of them are forgiven.
            places = [f"cpu{cpu}" for cpu in cpus]
            others = busy - own - readings.strays(places) - self._runners(cpus, readings) - FORGIVEN
            share = _share(others / len(cpus), readings)
            if share > self.limits.foreign:
                place = f"CPU{'s' if len(cpus) > 1 else ''} {format_cpu_list(cpus)}"
                load = f"others took {share:.0%} of {place} (limit {self.limits.foreign:.0%})"
                interrupts = readings.interrupts(cpus)
                reasons.append(_blaming(ReasonKind.FOREIGN_LOAD, load, others + FORGIVEN, readings, places, interrupts))
        return reasons

    def _sharing(self, active: Collection[str]) -> list[tuple[tuple[int, ...], list[str]]]:
        """Return the CPUs of those who run, with all who run on any of them: overcommitted CPUs have several."""
        groups: list[tuple[tuple[int, ...], list[str]]] = []
        for name in active:
            cpus, names = self.places[name], [name]
            for group in [group for group in groups if set(group[0]) & set(cpus)]:
                groups.remove(group)
                cpus, names = tuple(dict.fromkeys((*group[0], *cpus))), [*group[1], *names]
            groups.append((cpus, names))
        return groups

    def _neighbours(self, readings: Readings) -> list[Reason]:
        """Others' time on CPUs that share a last-level cache, or a package and its memory, with the launch."""
        limits, reasons = self.limits, []
        for domain in self.surroundings.domains:
            others = self._others(domain, readings)
            share = _share(others / domain.size, readings)
            if share > limits.neighbours:
                where = f"around cache {domain.name} (limit {limits.neighbours:.0%})"
                load = f"others took {share:.0%} of the CPU time {where}"
                reasons.append(_blaming(ReasonKind.NEIGHBOURS, load, others, readings, [domain.name]))
            elif limits.neighbours < 1 and _is_more(others, limits.neighbour_cpus, readings):
                load = _took_cpus(others, f"cache {domain.name}", limits.neighbour_cpus, readings)
                reasons.append(_blaming(ReasonKind.NEIGHBOURS, load, others, readings, [domain.name]))
        for package in self.surroundings.packages:
            others, most = self._others(package, readings), limits.package_cpus
            if _is_more(others, most, readings):
                load = _took_cpus(others, package.name.replace("package", "package "), most, readings)
                reasons.append(_blaming(ReasonKind.NEIGHBOURS, load, others, readings, [package.name]))
        return reasons

    def _others(self, domain: Domain, readings: Readings) -> float:
        busy = readings.get(domain.name, "neighbours_busy_s") or 0.0
        return busy - self._runners(domain.neighbours, readings)

    def _runners(self, cpus: Iterable[int], readings: Readings) -> float:
        """Return the runner's own time, where it sits on one of these CPUs."""
        return (readings.get("runner", "cpu_s") or 0.0) if self.runner_cpus & set(cpus) else 0.0

    def _cpus(self) -> set[int]:
        return {cpu for cpus in self.places.values() for cpu in cpus}


def _together(names: Iterable[str], readings: Readings) -> float | None:
    """Return the CPU time of these members; None where that of one is not known."""
    times = [readings.get(name, "cpu_s") for name in names]
    known = [each for each in times if each is not None]
    return sum(known) if len(known) == len(times) else None


def _share(seconds: float, readings: Readings) -> float:
    """Return the share of the window: all of it at most, though edges that are read late make more of it."""
    return min(seconds / readings.seconds, 1.0)


def _is_more(seconds: float, cpus: float, readings: Readings) -> bool:
    """Check whether others took more than the time of so many CPUs; ticks are coarse, and two of them are forgiven."""
    return seconds - FORGIVEN > cpus * readings.seconds


def _took_cpus(seconds: float, where: str, limit: float, readings: Readings) -> str:
    cpus = seconds / readings.seconds
    return f"others took the time of {cpus:.1f} CPUs around {where} (limit {limit:g} CPUs)"


def _blaming(
    kind: ReasonKind, load: str, seconds: float, readings: Readings, places: Iterable[str], interrupts: float = 0.0
) -> Reason:
    """Name who took most of these seconds, as far as that is known."""
    takers = readings.takers(places)
    if takers and takers[0][0] >= max(seconds / 2, interrupts):
        who, how = takers[0][1], "mostly"
    elif interrupts >= seconds / 2:
        who, how = "interrupts", "mostly"
    elif takers:
        who, how = takers[0][1], "among them"
    else:
        who, how = NOT_VISIBLE, "by"
    return Reason(kind, f"{load}, {how} {who}", who)
