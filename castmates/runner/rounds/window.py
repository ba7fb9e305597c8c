"""What a round gives for a scene: all its slices in that round."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from castmates.counters.proc.cpu_time import CpuTime
from castmates.protocols import Count, Sample
from castmates.results.columns.launch import OF_CPUS, OF_SERVICES
from castmates.runner.processes import restarts
from castmates.runner.processes.launch import Running
from castmates.runner.rounds.lead_in import LeadIn
from castmates.runner.rounds.slices import Progress, Slice
from castmates.runner.rounds.stage import Emptied
from castmates.study.reasons import Reason
from castmates.study.spec import Scene

if TYPE_CHECKING:
    from castmates.runner.rounds.requests import Recorded


NEGLIGIBLE = 0.01  # of the time that slices were open


@dataclass
class Window:
    """The slices of a scene in one round."""

    scene: Scene
    slices: list[Slice] = field(default_factory=list)  # of the usual length, in the order of time
    watched: Slice = field(init=False)  # in which everything was read; one of the slices, unless it is longer
    slow: frozenset[str] = frozenset()  # members whose steps are too long for the usual slices
    round: int = 0
    position: int = 0  # of its first slice among those of the round's windows
    reasons: list[Reason] = field(default_factory=list)  # why it does not count
    of_stretch: list[Reason] = field(default_factory=list)  # those of them that spoil all windows of its stretch
    lead_in: LeadIn = field(default_factory=LeadIn)  # into its stretch
    emptied: Emptied | None = None  # how far the caches were, before its stretch; None where that was not wanted

    def slices_of(self, name: str) -> list[Slice]:
        """Those that give this member's progress, as far as they count."""
        return [each for each in self.all_slices_of(name) if each.counted]

    def all_slices_of(self, name: str) -> list[Slice]:
        """Those that give this member's progress, rejected ones too."""
        return [self.watched] if name in self.slow or not self.slices else self.slices

    @property
    def cycles(self) -> int:
        """How many cycles its slices are of: the scene `alone` may have two slices in one."""
        return len({each.cycle for each in self.slices})

    @property
    def all_slices(self) -> list[Slice]:
        """Every slice of it."""
        return self.slices if any(each is self.watched for each in self.slices) else [*self.slices, self.watched]

    def reasons_of(self, name: str) -> list[Reason]:
        """Why it does not count for this member."""
        own = [] if self.slices_of(name) else [reason for each in self.all_slices_of(name) for reason in each.reasons]
        return list(dict.fromkeys([*self.reasons, *own]))

    def total(self, name: str) -> "Total":
        """What a member did in it."""
        slices = self.slices_of(name)
        return Total([each.progress(name) for each in slices], sum(each.seconds for each in slices))

    def on_cpus(self, name: str) -> dict[str, float]:
        """What a member had of its CPUs in these slices; NaN where one of them was not read."""
        own = ((CpuTime.name, name, metric) for metric in OF_CPUS)
        read = [{_of_what(one): one.value for one in each.samples} for each in self.slices_of(name)]
        parts = {key[-1]: [each.get(key) for each in read] for key in own}
        return {
            metric: math.nan if not values or None in values else sum(value or 0.0 for value in values)
            for metric, values in parts.items()
        }

    def later(self, name: str) -> float:
        """A member's rate in the later halves of its slices over that in the earlier ones."""
        halves = [each.halves(name) for each in self.slices_of(name)]
        early, late = (Total(part, 0.0) for part in zip(*halves, strict=True)) if halves else (Total([], 0.0),) * 2
        return late.rate / early.rate if early.rate else float("nan")

    def sums(self) -> list[Sample]:
        """What was read: sums over the slices that count, and whatever only the watched one has, where it counts."""
        parts = [each.samples for each in self.slices if each.counted]
        of_watched = self.watched.samples if self.watched.counted or not parts else []
        return add_samples(parts, of_watched)

    def samples(self) -> list[Sample]:
        """The same, but that the runs of a slow member are those of the slice that gives its progress."""
        if not self.slices:
            return self.sums()
        own = [sample for sample in self.watched.samples if self._is_run_of_slow(sample)]
        return [sample for sample in self.sums() if not self._is_run_of_slow(sample)] + own

    def _is_run_of_slow(self, sample: Sample) -> bool:
        return sample.source == restarts.SOURCE and sample.subject in self.slow

    def counts(self) -> list[Count]:
        """What was counted for each member in the slices that give its progress."""
        named: dict[str, list[list[Count]]] = {}
        for name in self.scene.active:
            for each in self.slices_of(name):
                named.setdefault(name, []).append([count for count in each.counts if count.subject == name])
        of_watched = [self._as_watched(count) for count in self.watched.counts if count.kind == "metric"]
        sums = [self._with_lead_in(name, count) for name, parts in named.items() for count in add_counts(parts)]
        return sums + of_watched

    def _with_lead_in(self, name: str, count: Count) -> Count:
        """What was counted also in time that was found to be unsteady later, and that the rate leaves out."""
        slices = self.slices_of(name)
        late_s, open_s = sum(each.begin_ns(name) - each.open_ns for each in slices) / 1e9, self.total(name).open_s
        if count.value is None or late_s <= NEGLIGIBLE * open_s:
            return count
        also = f"counted in {open_s:.3f} s, {late_s:.3f} s of which the rate leaves out"
        return replace(count, note=f"{count.note}; {also}" if count.note else also)

    def _as_watched(self, count: Count) -> Count:
        """What was counted in the watched slice alone; nothing, where that one does not count."""
        if self.watched.counted:
            return count
        why = "; ".join(map(str, self.watched.reasons)) or "another slice of its cycle"
        return replace(count, value=None, status="not counted", note=f"the watched slice does not count: {why}")


@dataclass(frozen=True)
class Total:
    """What one member did in all slices of a window."""

    parts: Sequence[Progress]
    open_s: float  # that they were open

    @property
    def _steps(self) -> list[Progress]:
        return [part for part in self.parts if len(part.records) > 1]

    @property
    def beats(self) -> int:
        """Heartbeats inside the slices."""
        return sum(len(part.records) for part in self.parts)

    @property
    def units(self) -> float:
        """Units done between the first and the last heartbeat of each slice."""
        return _sum(part.units for part in self._steps)

    @property
    def seconds(self) -> float:
        """The time between them."""
        return _sum(part.seconds for part in self._steps)

    @property
    def rate(self) -> float:
        """Units per second over that time."""
        return self.units / self.seconds if self.seconds else float("nan")

    @property
    def first_ns(self) -> int | None:
        """The first heartbeat."""
        return min((part.records[0][0] for part in self.parts if part.records), default=None)

    @property
    def last_ns(self) -> int | None:
        """The last heartbeat."""
        return max((part.records[-1][0] for part in self.parts if part.records), default=None)


def _sum(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) if known else float("nan")


# The sums of what was read and counted in the slices of a window.

LONGEST = "longest_restart_gap_s"
SUMMED = {restarts.SOURCE: ("restarts", "restart_gap_s", LONGEST)}  # of a source, the metrics that can be added up


def add_samples(parts: Sequence[Sequence[Sample]], of_watched: Sequence[Sample]) -> list[Sample]:
    """Sums of what every slice has, at the last one's time, and the rest of the watched slice as it is."""
    sums: dict[tuple[str, str, str], Sample] = {}
    every = [sample for part in parts for sample in part]
    singles = [sample for sample in every if sample.source == restarts.SOURCE and not can_be_summed(sample)]
    for sample in filter(can_be_summed, every):
        key = _of_what(sample)
        sums[key] = _sums_sum(sums[key], sample) if key in sums else sample
    rest = [sample for sample in of_watched if not can_be_summed(sample) and sample.source != restarts.SOURCE]
    return [*sums.values(), *singles, *(rest if parts else of_watched)]


def _of_what(sample: Sample) -> tuple[str, str, str]:
    return sample.source, sample.subject, sample.metric


def can_be_summed(sample: Sample) -> bool:
    """Check whether a sample is an amount of its slice, which every slice has."""
    return sample.source == CpuTime.name or sample.metric in SUMMED.get(sample.source, ())


def add_counts(parts: Sequence[Sequence[Count]]) -> list[Count]:
    """The sum of each event over slices; a count that lacks a slice is none."""
    sums: dict[tuple[str, str, str, str], Count] = {}
    for count in (count for part in parts for count in part if count.kind == "event"):
        key = (count.subject, count.name, count.group, count.phase)
        sums[key] = _added(sums[key], count) if key in sums else count
    return list(sums.values())


def _sums_sum(one: Sample, other: Sample) -> Sample:
    if one.value is None or other.value is None:
        return replace(other, value=None, note=one.note if one.value is None else other.note)
    value = max(one.value, other.value) if one.metric == LONGEST else one.value + other.value
    return replace(other, value=value)


def _added(one: Count, other: Count) -> Count:
    if one.value is None or other.value is None:
        return one if one.value is None else other
    running = None if one.running is None or other.running is None else min(one.running, other.running)
    status = "scaled" if "scaled" in (one.status, other.status) else one.status
    return replace(other, value=one.value + other.value, running=running, status=status)


# What windows and slices have of the requests to services; where there is no service, nothing is imported for it.

NOT_A_SERVICE = dict.fromkeys(OF_SERVICES, math.nan)


@dataclass(frozen=True)
class Services:
    """What the services of a launch recorded, by the member's name; of one that lost something nothing is known."""

    recorded: "Mapping[str, Recorded | None]"

    @classmethod
    def of(cls, cast: Sequence[Running]) -> "Services":
        """Take what each of them recorded."""
        logs = {process.name: process.requests for process in cast if process.requests is not None}
        if not logs:
            return cls({})
        from castmates.runner.rounds.requests import Recorded

        found: dict[str, Recorded | None] = {}
        for name, log in logs.items():
            records = log.records()  # before what is lost is looked at: it shows some of it
            found[name] = None if log.lost or log.trouble else Recorded(records)
        return cls(found)

    def of_window(self, window: Window, name: str) -> dict[str, float]:
        """A window's columns; of a service the rate and what is made of it are those of its speed.

        Beside others the speed may be a bound, so that a loss is that or more. Of a baseline it must be known: else no
        loss would be seen where both are bounds.
        """
        if name not in self.recorded:
            return dict(NOT_A_SERVICE)
        if (recorded := self.recorded[name]) is None:
            return NOT_A_SERVICE | {"rate": math.nan, "later": math.nan}
        slices = window.slices_of(name)
        requests = recorded.of_slices(name, slices)
        speed = requests.speed(at_most=window.scene.kind == "corun")
        return NOT_A_SERVICE | requests.columns | {"rate": speed, "later": recorded.later(name, slices)}

    def of_slice(self, each: Slice, name: str) -> dict[str, float]:
        """A slice's columns: the speed of a service."""
        if name not in self.recorded:
            return {}
        recorded = self.recorded[name]
        return {"rate": recorded.of_slices(name, [each]).speed(at_most=True) if recorded else math.nan}
