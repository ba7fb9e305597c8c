"""Slices of a machine that wanders, for many studies at once: a known truth to hold printed intervals against.

Nothing here is measured. Orders are those of our scheduler, windows are made as the runner makes them, and each study
has a separate platform, because the analysis pools none: one plan and one table hold them all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.signal import lfilter

from benchmarks.simulated_cast import COHORTS, LAUNCHES, LEAD, SHORT, Counts, Flags, Slicing, plan_of, schedule
from castmates.analysis.explanations.evolution import COLUMNS as BEATS
from castmates.analysis.statistics.intervals import Floats
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import SLICES, WINDOWS
from castmates.study.reasons import ReasonKind
from castmates.study.spec import Cohort, Plan, Scene

SWITCH = 0.001  # seconds
GAP = 1.0  # seconds between two rounds
SPARE_ROUNDS = 1  # for those with rejected windows
LEAST_CYCLES = 0.5  # that must be left of a window
STEP, UNEVEN, MOST_STEPS = 0.011, 0.2, 24  # seconds, sd of its log, of a slice

LOSSES = {
    "placebo:1": 0.03, "placebo:1@split-4": 0.07,
    "corun:lead+first": 0.2, "corun:lead+second": 0.05, "corun:lead+third": 0.1,
    "corun:lead+first@split-4": 0.12,
}  # fmt: skip


@dataclass(frozen=True)
class Antagonist:
    """A program outside that slows the running members, in this share of the slices of each kind of scene."""

    strikes: Mapping[str, float]
    loss: float = 0.3  # of the rate
    seen: float = 0.5  # share of its strikes that the ledger sees


@dataclass(frozen=True)
class Machine:
    """How rates and losses vary. Losses are shares of a rate; what varies does so by this standard deviation."""

    wander: float = 0.03  # of every member's log rate
    memory: float = 1.0  # seconds
    noise: float = 0.025  # of a slice's log rate
    losses: Mapping[str, float] = field(default_factory=lambda: LOSSES)
    effect: float = 0.25  # of a co-run's loss, as a share of it: what it wanders by
    effect_memory: float = 2.0  # seconds
    launch: float = 0.1  # of a co-run's loss, as a share of it: what it differs by between launches
    carry_over: float = 0.0  # what a member loses in a slice after one in which it was frozen
    rejected: float = 0.02  # share of slices, of every scene
    spoilt: float = 0.0  # share of windows that are rejected as a whole
    antagonist: Antagonist | None = None

    def loss(self, scene: str, member: str = LEAD) -> float:
        """What a member loses in a scene, on average."""
        return self.losses.get(scene, 0.0) * (1.0 if member == LEAD else 0.5)


@dataclass(frozen=True)
class Studies:
    """Simulated studies of one cohort."""

    plan: Plan
    windows: pd.DataFrame  # the column `platform` numbers the studies
    lasting: Mapping[str, Floats]  # by scene: what the lead loses in each launch in the long run; log, study x launch
    shown: Mapping[str, Floats]  # the same while each round lasted; study x launch x round
    slices: pd.DataFrame  # both empty unless requested
    beats: pd.DataFrame


def simulate(
    machine: Machine,
    cohort: Cohort,
    studies: int,
    launches: int,
    rounds: int,
    seed: int,
    also: Iterable[str] = (),
    slicing: Slicing = SHORT,
) -> Studies:
    """Play so many studies, slice by slice; `also` may ask for `slices` and `beats`."""
    rng = np.random.default_rng(seed)
    course = _Course(machine, cohort, slicing, (studies, launches, rounds + SPARE_ROUNDS), rng)
    rejected, counted = _judged(machine, course, rng)
    # A window counts by its cycles: a scene that comes twice in a cycle is not judged differently.
    first = [counted[..., course.first_of(number)].mean(axis=3) for number in range(len(cohort.scenes))]
    valid = np.stack(first, axis=-1) >= LEAST_CYCLES
    valid = np.asarray(valid & (rng.random(valid.shape) >= machine.spoilt))
    played = _played(np.asarray(valid.all(axis=3)), rounds)
    windows, slices, beats = [], [], []
    for number, scene in enumerate(cohort.scenes):
        for member in scene.active:
            slots = course.slices_of(number)
            counts, loses, holds = counted[..., slots], rejected[..., slots], valid[..., number]
            rates, cycles, places = course.rates(number, member), course.cycle[slots], course.places[..., slots]
            own = _Window(scene, member, number, rates, counts, loses, holds, played, cycles, slicing)
            windows.append(own.table())
            if "slices" in also:
                slices.append(own.slices(places))
            if "beats" in also and member == LEAD:
                beats.append(own.beats(places, rng))
    return Studies(
        plan_of(cohort, launches),
        _with_columns(pd.concat(windows, ignore_index=True), WINDOWS),
        course.lasting,
        course.shown,
        _with_columns(pd.concat(slices, ignore_index=True), SLICES) if slices else pd.DataFrame(),
        pd.concat(beats, ignore_index=True) if beats else pd.DataFrame(),
    )


class _Course:
    """What happens in all slices: arrays of studies x launches x rounds x slices."""

    def __init__(
        self,
        machine: Machine,
        cohort: Cohort,
        slicing: Slicing,
        shape: tuple[int, int, int],
        rng: np.random.Generator,
    ) -> None:
        plan = schedule(next(name for name, make in COHORTS.items() if make() is cohort), slicing, shape[2])
        drawn = rng.integers(0, LAUNCHES, shape[:2])
        self.shape, self.cohort, self._slicing = shape, cohort, slicing
        self.places, self._cold, self._drawn = plan.places[drawn], plan.cold, drawn
        self.scene, self.cycle, self.stretch = plan.scene, plan.cycle, plan.stretch
        self._machine, self._rng, self._length = machine, rng, plan.length
        self._speed = {member.name: self._wander(machine.memory) for member in cohort.members}
        strikes = machine.antagonist.strikes if machine.antagonist else {}
        share = np.array([strikes.get(scene.kind, 0.0) for scene in cohort.scenes])[self.scene]
        self.struck = rng.random(self.places.shape) < share
        self.lasting: dict[str, Floats] = {}
        self.shown: dict[str, Floats] = {}

    def slices_of(self, number: int) -> Counts:
        """Which slices are a scene's: one of each cycle, then second ones."""
        return np.flatnonzero(self.scene == number)

    def first_of(self, number: int) -> Counts:
        """One slice of each cycle."""
        return self.slices_of(number)[: self._slicing.cycles]

    def rates(self, number: int, member: str) -> Floats:
        """The rate of a member in each slice of a scene."""
        machine, scene, slots = self._machine, self.cohort.scenes[number], self.slices_of(number)
        place = self.places[..., slots]
        logs = machine.wander * np.take_along_axis(self._speed[member], place, axis=-1)
        logs = logs + machine.noise * self._rng.standard_normal(place.shape)
        rates = np.exp(logs) * (1 - self._losses(scene, member, place))
        rates *= 1 - machine.carry_over * self._cold[member][self._drawn][..., slots]
        if machine.antagonist:
            rates *= 1 - machine.antagonist.loss * self.struck[..., slots]
        return np.asarray(rates)

    def _losses(self, scene: Scene, member: str, place: Counts) -> Floats:
        machine, loss = self._machine, self._machine.loss(scene.name, member)
        if scene.kind != "corun":
            return np.full((1, 1, 1, 1), loss)
        here = loss * (1 + machine.launch * self._rng.standard_normal((*self.shape[:2], 1, 1)))
        path = loss * machine.effect * self._wander(machine.effect_memory)
        if member == LEAD:
            self.lasting[scene.name] = -np.log1p(-here[..., 0, 0])
            self.shown[scene.name] = -np.log1p(-(here[..., 0] + path.mean(axis=-1)))
        return np.asarray(here + np.take_along_axis(path, place, axis=-1))

    def _wander(self, memory: float) -> Floats:
        """An Ornstein-Uhlenbeck process of unit variance through a launch, at every slice of its rounds."""
        every = self._slicing.slice + SWITCH
        gap = round(GAP / every)
        kept = np.exp(-every / memory)
        steps = self._rng.standard_normal((*self.shape[:2], self.shape[2] * (self._length + gap)), dtype=np.float32)
        first = steps[..., :1]  # it has gone on for long
        rest, _ = lfilter([np.sqrt(1 - kept**2)], [1.0, -kept], steps[..., 1:], zi=kept * first)
        path = np.concatenate([first, rest], axis=-1).astype(np.float32)
        return np.asarray(path.reshape(*self.shape, self._length + gap)[..., : self._length])


def _judged(machine: Machine, course: _Course, rng: np.random.Generator) -> tuple[Flags, Flags]:
    """Which slices are rejected for what lies in them, and which count: none of their cycle is rejected."""
    rejected = rng.random(course.places.shape) < machine.rejected
    if machine.antagonist:
        rejected |= course.struck & (rng.random(course.places.shape) < machine.antagonist.seen)
    broken = np.zeros_like(rejected)
    for stretch, cycle in sorted({*zip(course.stretch, course.cycle, strict=True)}):
        own = (course.stretch == stretch) & (course.cycle == cycle)
        broken[..., own] = rejected[..., own].any(axis=-1, keepdims=True)
    return rejected, ~broken


def _played(clean: Flags, rounds: int) -> Flags:
    """Which rounds take place: spare ones are for those with rejected windows."""
    before = clean.cumsum(axis=-1) - clean
    return np.asarray(before < rounds)


@dataclass(frozen=True)
class _Window:
    """A member in a scene, in all rounds."""

    scene: Scene
    member: str
    number: int  # of the scene
    rates: Floats
    counted: Flags
    rejected: Flags
    valid: Flags
    played: Flags
    cycles: Counts  # of each slice, from 0
    slicing: Slicing

    def table(self) -> pd.DataFrame:
        """Windows: total progress over the total time of the slices that count."""
        counts, lost = self.counted.sum(axis=3), self.rejected.sum(axis=3)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(self.counted, self.rates, 0.0).sum(axis=3) / counts
        length, slices = self.slicing.slice, len(self.cycles)
        few = self.counted[..., : self.slicing.cycles].mean(axis=3) < LEAST_CYCLES
        kinds = np.where(few, ReasonKind.TOO_FEW_CYCLES, ReasonKind.STEAL)
        values = {
            "rate": rate, "valid": self.valid, "slices": np.full(rate.shape, slices), "slices_rejected": lost,
            "slices_dropped": slices - counts - lost, "open_s": counts * length, "progress_s": counts * length,
            "later": np.ones(rate.shape),
            "units": rate * counts * length, "reason_kinds": np.where(self.valid, "", kinds),
        }  # fmt: skip
        return self._placed(self.played, values)

    def slices(self, places: Counts) -> pd.DataFrame:
        """Each slice by itself."""
        there = np.broadcast_to(self.played[..., None], self.rates.shape)
        numbers = np.broadcast_to(1 + self.cycles, self.rates.shape)
        values = {"rate": self.rates, "counted": self.counted & self.valid[..., None], "cycle": numbers}
        return self._placed(there, values | {"slice": self._slice(places)}).assign(stretch=1)

    def beats(self, places: Counts, rng: np.random.Generator) -> pd.DataFrame:
        """The heartbeats of the slices that count; each slice ends with the first step after its length."""
        counted = self.counted & (self.valid & self.played)[..., None]
        lengths = STEP * np.exp(UNEVEN * rng.standard_normal((*self.rates.shape, MOST_STEPS), dtype=np.float32))
        times = np.cumsum(lengths / self.rates[..., None], axis=-1)
        times = np.concatenate([np.zeros_like(times[..., :1]), times], axis=-1)
        before = np.concatenate([np.zeros_like(times[..., :1]), times[..., :-1]], axis=-1)
        there = (before < self.slicing.slice) & counted[..., None]
        shape = there.shape
        values = {
            "t_ns": (times * 1e9).astype(np.int64),
            "units": np.broadcast_to(np.arange(shape[-1]), shape),
            "slice": np.broadcast_to(self._slice(places)[..., None], shape),
        }
        return self._placed(there, values)[list(BEATS)]

    def _slice(self, places: Counts) -> Counts:
        """The numbers of these slices in their launches."""
        rounds = np.arange(places.shape[2])[:, None]
        return np.asarray(1 + places + 1000 * rounds)

    def _placed(self, where: Flags, values: Mapping[str, npt.NDArray[np.generic]]) -> pd.DataFrame:
        """A row for each place that is marked, with these values of it."""
        study, launch, number, *_ = np.nonzero(where)
        scene, names = self.scene, pd.Index([f"{one:05d}" for one in range(where.shape[0])])
        columns = {
            "platform": pd.Categorical.from_codes(study, names),
            "launch": launch + 1, "round": number + 1,
            "window": 100 * (study * where.shape[2] + number) + self.number + 1,  # no two studies have the same
        }  # fmt: skip
        table = pd.DataFrame(columns | {name: value[where] for name, value in values.items()})
        return table.assign(
            study="simulated", cohort="cohort", scene=scene.name, kind=scene.kind, mix=scene.mix, unit="step",
            partition=scene.partition, member=self.member, workload=self.member.partition("@")[0],
            role="lead" if self.member == LEAD else "antagonist",
        )  # fmt: skip


def _with_columns(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """The table as the contract has it; what is not simulated is empty or zero."""
    missing = {name: kind for name, kind in columns.items() if name not in table}
    words = dict.fromkeys([name for name, kind in missing.items() if kind == "str"], "")
    flags = dict.fromkeys([name for name, kind in missing.items() if kind == "bool"], False)
    numbers = dict.fromkeys([name for name, kind in missing.items() if kind in ("int64", "float64")], 0)
    return table.assign(**words, **flags, **numbers).reindex(columns=list(columns)).astype(dict(columns))
