"""Slices of a machine that wanders, for many studies at once: a known truth to hold printed intervals against.

Nothing here is measured. The orders are those of our own schedule, windows are made as the runner makes them, and each
study stands on a platform of its own, because the analysis pools none: one plan and one table hold them all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.signal import lfilter

from castmates.analysis.statistics.intervals import Floats
from castmates.results.columns.block import SLICES, WINDOWS
from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of
from castmates.study.schedule import stretches
from castmates.study.spec import PROTOCOL, Block, Company, Member, Mix, Plan

LEAD, FIRST, SECOND = "lead@0", "first@1", "second@1"
SLICE, SWITCH, CYCLES = 0.06, 0.001, 12  # seconds, seconds, slices of a window
GAP = 1.0  # seconds between two rounds
SPARE_ROUNDS = 1  # for those with rejected windows
LEAST_CYCLES = 0.5  # that must be left of a window
ORDERS = 500  # rounds of our schedule, from which every round draws one
QUIET = ("solo", "solo-again")

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Neighbour:
    """Somebody outside who slows whoever runs, in this share of the slices of each kind of scene."""

    strikes: Mapping[str, float]
    loss: float = 0.3  # of the rate
    seen: float = 0.5  # share of its strikes that the ledger sees


@dataclass(frozen=True)
class Machine:
    """How rates and losses vary. Losses are shares of the rate; what wanders does so by this standard deviation."""

    wander: float = 0.03  # of every member's log rate
    memory: float = 1.0  # seconds
    noise: float = 0.025  # of a slice's log rate
    losses: Mapping[str, float] = field(default_factory=lambda: {"corun:lead+first": 0.2, "corun:lead+second": 0.05})
    placebo: float = 0.03
    effect: float = 0.25  # of a loss: what it wanders by, as a share of itself
    effect_memory: float = 2.0  # seconds
    launch: float = 0.1  # of a loss: what it differs by between launches, as a share of itself
    carry_over: float = 0.0  # what a slice after others loses
    rejected: float = 0.02  # share of slices, whatever their scene
    spoilt: float = 0.0  # share of windows that are rejected as a whole
    neighbour: Neighbour | None = None

    def loss(self, scene: str, member: str) -> float:
        """What a member loses in a scene, on average."""
        if scene.startswith("placebo"):
            return self.placebo
        return self.losses.get(scene, 0.0) * (1.0 if member == LEAD else 0.5)


@dataclass(frozen=True)
class Studies:
    """Simulated studies of one company."""

    plan: Plan
    windows: pd.DataFrame  # the column `platform` numbers the studies
    lasting: dict[str, Floats]  # by scene: what the lead loses in each launch in the long run; log, study x launch
    shown: dict[str, Floats]  # the same while each round lasted; study x launch x round
    slices: pd.DataFrame  # empty unless asked for


@cache
def company() -> Company:
    """A lead beside each of two antagonists: seven scenes."""
    mixes = tuple(
        Mix(name=f"lead+{name.partition('@')[0]}", identity=name, lead=LEAD, antagonists=(name,))
        for name in (FIRST, SECOND)
    )
    members = {name: _member(name) for name in (LEAD, FIRST, SECOND)}
    scenes = scenes_of(mixes, members)
    return Company(
        id="company", protocol=PROTOCOL, native_key="", members=tuple(members.values()), mixes=mixes, scenes=scenes
    )


def plan(launches: int) -> Plan:
    """The plan of every study."""
    design = design_of(Study(name="simulated"))
    blocks = tuple(
        Block(study="simulated", company=company(), number=number, seed=number, design=design)
        for number in range(1, launches + 1)
    )
    return Plan(study="simulated", titles={}, mixes=company().mixes, controls=(), blocks=blocks)


def simulate(machine: Machine, studies: int, launches: int, rounds: int, seed: int, slices: bool = False) -> Studies:
    """Play so many studies, slice by slice."""
    rng = np.random.default_rng(seed)
    course = _Course(machine, (studies, launches, rounds + SPARE_ROUNDS), rng)
    scenes = company().scenes
    counted, rejected = _judged(machine, scenes_kinds(), course, rng)
    valid = counted.mean(axis=3) >= LEAST_CYCLES
    valid = valid[..., None] & (rng.random((*course.shape, len(scenes))) >= machine.spoilt)
    played = _played(valid.all(axis=3), rounds)
    windows, parts = [], []
    for number, scene in enumerate(scenes):
        for member in scene.active:
            rates = course.rates(number, member)
            about = {"scene": scene.name, "kind": scene.kind, "mix": scene.mix, "member": member, "unit": "step",
                     "role": "lead" if member == LEAD else "antagonist", "workload": member.partition("@")[0]}  # fmt: skip
            own = _Window(about, number, rates, counted, rejected[..., number], valid[..., number], played)
            windows.append(own.table())
            if slices:
                parts.append(own.slices(course.places[..., number]))
    return Studies(
        plan(launches),
        _as(pd.concat(windows, ignore_index=True), WINDOWS),
        course.lasting,
        course.shown,
        _as(pd.concat(parts, ignore_index=True), SLICES) if parts else pd.DataFrame(),
    )


def scenes_kinds() -> list[str]:
    """The kind of each scene."""
    return [scene.kind for scene in company().scenes]


class _Course:
    """What happens in all slices: arrays of studies x launches x rounds x cycles."""

    def __init__(self, machine: Machine, shape: tuple[int, int, int], rng: np.random.Generator) -> None:
        self.shape = shape
        self._machine, self._rng = machine, rng
        scenes = company().scenes
        self._scenes = len(scenes)
        orders = _orders()[rng.integers(0, ORDERS, shape)]  # ... x cycle x place: the scene there
        # Where each scene stands among the slices of its round: ... x cycle x scene.
        self.places = orders.argsort(axis=-1) + np.arange(CYCLES)[:, None] * self._scenes
        by_time = np.isin(orders, [n for n, scene in enumerate(scenes) if scene.kind not in QUIET])
        by_time = by_time.reshape(*shape, -1)
        before = np.concatenate([np.zeros((*shape, 1), bool), by_time[..., :-1]], axis=-1)
        self._after_others = self._at(before)
        self._speed = {member.name: self._wander(machine.memory) for member in company().members}
        kinds = scenes_kinds()
        strikes = [machine.neighbour.strikes.get(kind, 0.0) if machine.neighbour else 0.0 for kind in kinds]
        self.struck = rng.random(self.places.shape) < np.array(strikes)
        self.lasting: dict[str, Floats] = {}
        self.shown: dict[str, Floats] = {}

    def rates(self, number: int, member: str) -> Floats:
        """The rate of a member in each slice of a scene."""
        machine, scene = self._machine, company().scenes[number]
        loss = machine.loss(scene.name, member)
        place = self.places[..., number].reshape(*self.shape, CYCLES)
        losses: Floats = np.full((*self.shape[:2], 1, 1), loss)
        if scene.kind == "corun":
            losses = losses + loss * machine.launch * self._rng.standard_normal(losses.shape)
            path = loss * machine.effect * self._wander(machine.effect_memory)
            if member == LEAD:
                self.lasting[scene.name] = -np.log1p(-losses[..., 0, 0])
                self.shown[scene.name] = -np.log1p(-(losses[..., 0] + path.mean(axis=-1)))
            losses = losses + np.take_along_axis(path, place, axis=-1)
        logs = machine.wander * np.take_along_axis(self._speed[member], place, axis=-1)
        logs = logs + machine.noise * self._rng.standard_normal(place.shape)
        rates = np.exp(logs) * (1 - losses) * (1 - machine.carry_over * self._after_others[..., number])
        if machine.neighbour:
            rates = rates * (1 - machine.neighbour.loss * self.struck[..., number])
        return np.asarray(rates, dtype=float)

    def _wander(self, memory: float) -> Floats:
        """An Ornstein-Uhlenbeck process of unit variance through a launch, at every slice of its rounds."""
        length = CYCLES * self._scenes
        gap = round(GAP / (SLICE + SWITCH))
        kept = np.exp(-(SLICE + SWITCH) / memory)
        steps = self._rng.standard_normal((*self.shape[:2], self.shape[2] * (length + gap)), dtype=np.float32)
        begin = steps[..., :1] * kept  # as if it had gone on for long
        moved = np.float32(np.sqrt(1 - kept**2)) * steps[..., 1:]
        rest, _ = lfilter([1.0], [1.0, -kept], moved, zi=begin)
        path = np.concatenate([steps[..., :1], rest], axis=-1)
        return np.asarray(path.reshape(*self.shape, length + gap)[..., :length])

    def _at(self, by_time: npt.NDArray[np.bool_]) -> Flags:
        """What holds at a place of the round, by cycle and scene."""
        flat = self.places.reshape(*self.shape, -1)
        return np.take_along_axis(by_time, flat, axis=-1).reshape(self.places.shape)


def _judged(machine: Machine, kinds: list[str], course: _Course, rng: np.random.Generator) -> tuple[Flags, Flags]:
    """Which cycles count, and which slices are rejected for what lies in them (... x cycle x scene)."""
    rejected = rng.random(course.places.shape) < machine.rejected
    if machine.neighbour:
        rejected |= course.struck & (rng.random(course.places.shape) < machine.neighbour.seen)
    return ~rejected.any(axis=-1), rejected


def _played(clean: Flags, rounds: int) -> Flags:
    """Which rounds take place: spare ones are for those with rejected windows."""
    before = np.concatenate([np.zeros_like(clean[..., :1], dtype=int), clean.cumsum(axis=-1)[..., :-1]], axis=-1)
    return np.asarray(before < rounds)


@dataclass(frozen=True)
class _Window:
    """A member in a scene, in all rounds."""

    about: Mapping[str, str]
    number: int  # of the scene
    rates: Floats
    counted: Flags
    rejected: Flags
    valid: Flags
    played: Flags

    def table(self) -> pd.DataFrame:
        """Windows: total progress over the total time of the slices that count."""
        counts = self.counted.sum(axis=3)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(self.counted, self.rates, 0.0).sum(axis=3) / counts
        lost = self.rejected.sum(axis=3)
        few = counts < LEAST_CYCLES * CYCLES
        places = self._places(self.played)
        values = {
            "rate": rate, "valid": self.valid, "slices": np.full(rate.shape, CYCLES), "slices_rejected": lost,
            "slices_dropped": CYCLES - counts - lost, "open_s": counts * SLICE, "progress_s": counts * SLICE,
            "units": rate * counts * SLICE,
            "reasons": np.where(self.valid, "", np.where(few, "too few cycles: simulated", "steal: simulated")),
        }  # fmt: skip
        return pd.DataFrame(places | {name: value[self.played] for name, value in values.items()}).assign(**self.about)

    def slices(self, places: Counts) -> pd.DataFrame:
        """Each slice by itself."""
        there = np.broadcast_to(self.played[..., None], self.rates.shape)
        counted = self.counted & self.valid[..., None]
        cycle = np.broadcast_to(np.arange(1, CYCLES + 1), self.rates.shape)
        at = self._places(there)
        values = {"rate": self.rates, "counted": counted, "cycle": cycle, "slice": places + 1}
        table = pd.DataFrame(at | {name: value[there] for name, value in values.items()}).assign(**self.about)
        table["slice"] += 1000 * table["round"]
        return table.assign(stretch=1)

    def _places(self, where: Flags) -> dict[str, object]:
        study, launch, number, *_ = np.nonzero(where)
        windows = len(company().scenes)
        return {
            "platform": pd.Categorical.from_codes(study, categories=[f"{one:05d}" for one in range(where.shape[0])]),
            "study": "simulated",
            "company": "company",
            "block": launch + 1,
            "round": number + 1,
            "window": (study * where.shape[2] + number) * windows + self.number + 1,
        }


@cache
def _orders() -> Counts:
    """Rounds of our schedule: in each cycle, which scene stands at which place."""
    scenes = {scene.name: number for number, scene in enumerate(company().scenes)}
    block = plan(1).blocks[0]
    rounds = []
    for number in range(ORDERS):
        (stretch,) = stretches(block, number)
        rounds.append([[scenes[scene.name] for scene in order] for order in stretch.cycles(CYCLES)])
    return np.array(rounds)


def _as(table: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """The table with the columns of the contract; what is not simulated is zero or empty."""
    empty = {name: "" if kind == "str" else (0 if kind in ("int64", "float64") else pd.NA if kind == "Int64" else False)
             for name, kind in columns.items() if name not in table}  # fmt: skip
    return table.assign(**empty)[list(columns)].astype(dict(columns))


def _member(name: str) -> Member:
    workload, _, cpu = name.partition("@")
    return Member(
        name=name, workload=workload, role="lead" if name == LEAD else "antagonist", cpus=(int(cpu),), nodes=(),
        command=(workload,), environment=None, environment_key=None, content="", progress="heartbeat", unit="step",
        variables={}, ready_within=1,
    )  # fmt: skip
