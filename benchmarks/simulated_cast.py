"""Who plays in simulated studies, and when: small companies, and the rounds that our schedule gives them."""

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of
from castmates.study.schedule import stretches
from castmates.study.spec import PROTOCOL, REST, Block, Company, Member, Mix, Partition, Plan, Share

LEAD, FIRST, SECOND, THIRD = "lead@0", "first@1", "second@1", "third@1"
SPLIT = "split-4"
ORDERS = 500  # rounds of our schedule, from which every simulated round draws one
QUIET = ("solo", "solo-again")

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Slicing:
    """How finely a window is cut."""

    cycles: int  # of a stretch
    slice: float  # seconds
    twice: bool  # whether a solo that comes twice in a cycle is measured twice; without, intervals are wider


SHORT = Slicing(cycles=12, slice=0.06, twice=False)  # of a native lead, nearly
LONG = Slicing(cycles=2, slice=0.25, twice=True)  # of a Model Garden lead in the default study


@cache
def two_mixes() -> Company:
    """A lead beside each of two antagonists, in one stretch."""
    return _company(_mix(FIRST), _mix(SECOND))


@cache
def three_mixes() -> Company:
    """A lead beside each of three antagonists, in one stretch: the nine scenes of the default study."""
    return _company(_mix(FIRST), _mix(SECOND), _mix(THIRD))


@cache
def one_partition() -> Company:
    """A lead beside one antagonist, with and without a partition: two stretches."""
    mix = _mix(FIRST)
    low, high = 0b1111, 0b11110000
    shares = tuple(Share(member=name, ways=ways) for name, ways in ((LEAD, low), (FIRST, high), (REST, high)))
    partition = Partition(name=SPLIT, shares=shares)
    return _company(mix, mix.model_copy(update={"identity": f"{FIRST}/{SPLIT}", "partitions": (partition,)}))


def plan_of(company: Company, launches: int) -> Plan:
    """The plan of a study of this company."""
    design = design_of(Study(name="simulated"))
    blocks = tuple(
        Block(study="simulated", company=company, number=number, seed=number, design=design)
        for number in range(1, launches + 1)
    )
    return Plan(study="simulated", titles={}, mixes=company.mixes, controls=(), blocks=blocks)


@dataclass(frozen=True)
class Schedule:
    """Rounds of a company, slice after slice; of slices that are measured, in the same order in every round."""

    length: int  # slices of a round, with those that are left out at the begin of a stretch
    places: Counts  # round x slice: which of all it is
    after_others: Flags  # the same: whether others than the lead ran in the one before
    scene: Counts  # of each slice: the number of its scene
    cycle: Counts  # of each slice, from 0
    stretch: Counts  # of each slice, from 0


@cache
def schedule(which: str, slicing: Slicing) -> Schedule:
    """What our scheduler gives one of the companies above."""
    company = COMPANIES[which]()
    block, numbers = plan_of(company, 1).blocks[0], {scene.name: at for at, scene in enumerate(company.scenes)}
    parts = sorted(stretches(block, 0), key=lambda part: part.seed)
    measured = _measured(company, slicing)
    shape = (ORDERS, len(measured))
    places, after = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    place = 0
    for number in range(ORDERS):
        place = 0
        for part in stretches(block, number):
            if len(parts) > 1:  # masks have changed: every scene runs once unmeasured
                place += len(part.scenes)
            others = False
            for cycle, order in enumerate(part.cycles(slicing.cycles)):
                seen = Counter[str]()
                for scene in order:
                    seen[scene.name] += 1
                    # Where a second slice is not measured, it stands for the first: no two are of one moment.
                    time = seen[scene.name] if slicing.twice else 1
                    at = number, measured[cycle, numbers[scene.name], time]
                    places[at], after[at] = place, others
                    place, others = place + 1, scene.kind not in QUIET
    cycles, scenes, _ = np.array(list(measured)).T
    of_scene = [next(at for at, part in enumerate(parts) if scene in part.scenes) for scene in company.scenes]
    return Schedule(place, places, after, scenes, cycles, np.array(of_scene)[scenes])


def _measured(company: Company, slicing: Slicing) -> dict[tuple[int, int, int], int]:
    """The slices of a round that are measured: cycle, scene and first or second -> its number."""
    scenes = {scene.name: at for at, scene in enumerate(company.scenes)}
    slices = [(cycle, scene, 1) for cycle in range(slicing.cycles) for scene in scenes.values()]
    if slicing.twice:
        for part in stretches(plan_of(company, 1).blocks[0], 0):
            for cycle, order in enumerate(part.cycles(slicing.cycles)):
                counts = Counter(scene.name for scene in order)
                slices += [(cycle, scenes[name], 2) for name, count in counts.items() if count == 2]
    return {each: number for number, each in enumerate(slices)}


def _mix(antagonist: str) -> Mix:
    name = f"lead+{antagonist.partition('@')[0]}"
    return Mix(name=name, identity=antagonist, lead=LEAD, antagonists=(antagonist,))


def _company(*mixes: Mix) -> Company:
    names = dict.fromkeys([LEAD, *(name for mix in mixes for name in mix.antagonists)])
    members = {name: _member(name) for name in names}
    return Company(
        id="company", protocol=PROTOCOL, native_key="", members=tuple(members.values()), mixes=mixes,
        scenes=scenes_of(mixes, members),
    )  # fmt: skip


def _member(name: str) -> Member:
    workload, _, cpu = name.partition("@")
    return Member(
        name=name, workload=workload, role="lead" if name == LEAD else "antagonist", cpus=(int(cpu),), nodes=(),
        command=(workload,), environment=None, environment_key=None, content="", progress="heartbeat", unit="step",
        variables={}, ready_within=1,
    )  # fmt: skip


COMPANIES = {company.__name__: company for company in (two_mixes, three_mixes, one_partition)}
