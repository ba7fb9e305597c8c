"""Who plays in simulated studies, and when: small cohorts, and the rounds that our schedule gives them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of
from castmates.study.schedule import Orders, stretches
from castmates.study.spec import PROTOCOL, REST, Cohort, Launch, Member, Mix, Partition, Plan, Share

LEAD, FIRST, SECOND, THIRD = "lead@0", "first@1", "second@1", "third@1"
SPLIT = "split-4"
LAUNCHES = 40  # of our schedule, from which every simulated launch draws one
LEFT = 0.1  # of what being frozen costs in the next slice, in the one after that

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Slicing:
    """How finely a window is cut."""

    cycles: int  # of a stretch
    slice: float  # seconds
    twice: bool  # whether a scene alone that comes twice in a cycle is measured twice; without, intervals are wider


SHORT = Slicing(cycles=12, slice=0.06, twice=False)  # of a native lead, nearly
LONG = Slicing(cycles=2, slice=0.25, twice=True)  # of a Model Garden lead beside three antagonists


@cache
def two_mixes() -> Cohort:
    """A lead beside each of two antagonists, in one stretch."""
    return _cohort(_mix(FIRST), _mix(SECOND))


@cache
def three_mixes() -> Cohort:
    """A lead beside each of three antagonists, in one stretch, each measured alone too: nine scenes."""
    return _cohort(_mix(FIRST), _mix(SECOND), _mix(THIRD))


@cache
def one_partition() -> Cohort:
    """A lead beside one antagonist, with and without a partition: two stretches."""
    mix = _mix(FIRST)
    low, high = 0b1111, 0b11110000
    shares = tuple(Share(member=name, ways=ways) for name, ways in ((LEAD, low), (FIRST, high), (REST, high)))
    partition = Partition(name=SPLIT, shares=shares)
    return _cohort(mix, mix.model_copy(update={"identity": f"{FIRST}/{SPLIT}", "partitions": (partition,)}))


def plan_of(cohort: Cohort, count: int) -> Plan:
    """The plan of a study of this cohort."""
    design = design_of(Study(name="simulated"))
    launches = tuple(
        Launch(study="simulated", cohort=cohort, number=number, seed=number, design=design)
        for number in range(1, count + 1)
    )
    return Plan(study="simulated", titles={}, mixes=cohort.mixes, controls=(), launches=launches)


@dataclass(frozen=True)
class Schedule:
    """Launches of a cohort, slice after slice; of slices that are measured, in the same order in every round."""

    length: int  # slices of a round, with those that are left out at the begin of a stretch
    places: Counts  # launch x round x slice: which of its round it is
    cold: Mapping[str, Floats]  # by member, the same: how cold its caches are, 1 after a slice in which it was frozen
    scene: Counts  # of each slice: the number of its scene
    cycle: Counts  # of each slice, from 0
    stretch: Counts  # of each slice, from 0


@cache
def schedule(which: str, slicing: Slicing, rounds: int) -> Schedule:
    """What our scheduler gives one of the cohorts above."""
    cohort = COHORTS[which]()
    launches, numbers = plan_of(cohort, LAUNCHES).launches, {scene.name: at for at, scene in enumerate(cohort.scenes)}
    parts = sorted(stretches(launches[0], 0), key=lambda part: part.seed)
    measured = _measured(cohort, slicing)
    shape = (LAUNCHES, rounds, len(measured))
    places, place = np.zeros(shape, dtype=np.int64), 0
    cold = {member.name: np.zeros(shape) for member in cohort.members}
    for place_of_launch, launch in enumerate(launches):
        orders = Orders()
        for number in range(rounds):
            place = 0
            for part in stretches(launch, number):
                if len(parts) > 1:  # masks have changed: every scene runs once unmeasured
                    place += len(part.scenes)
                state = dict.fromkeys(cold, 0.0)
                for cycle, order in enumerate(orders.draw(part, slicing.cycles)):
                    seen = Counter[str]()
                    for scene in order:
                        seen[scene.name] += 1
                        # Where a second slice is not measured, it stands for the first: no two are of one moment.
                        time = seen[scene.name] if slicing.twice else 1
                        at = place_of_launch, number, measured[cycle, numbers[scene.name], time]
                        places[at], place = place, place + 1
                        for name, own in cold.items():
                            own[at] = state[name]
                            state[name] = LEFT * state[name] if name in scene.active else 1.0
    cycles, scenes, _ = np.array(list(measured)).T
    of_scene = [next(at for at, part in enumerate(parts) if scene in part.scenes) for scene in cohort.scenes]
    return Schedule(place, places, cold, scenes, cycles, np.array(of_scene)[scenes])


def _measured(cohort: Cohort, slicing: Slicing) -> dict[tuple[int, int, int], int]:
    """The slices of a round that are measured: cycle, scene and first or second -> its number."""
    scenes = {scene.name: at for at, scene in enumerate(cohort.scenes)}
    slices = [(cycle, scene, 1) for cycle in range(slicing.cycles) for scene in scenes.values()]
    if slicing.twice:
        for part in stretches(plan_of(cohort, 1).launches[0], 0):
            for cycle, order in enumerate(Orders().draw(part, slicing.cycles)):
                counts = Counter(scene.name for scene in order)
                slices += [(cycle, scenes[name], 2) for name, count in counts.items() if count == 2]
    return {each: number for number, each in enumerate(slices)}


def _mix(antagonist: str) -> Mix:
    name = f"lead+{antagonist.partition('@')[0]}"
    return Mix(name=name, identity=antagonist, lead=LEAD, antagonists=(antagonist,))


def _cohort(*mixes: Mix) -> Cohort:
    names = dict.fromkeys([LEAD, *(name for mix in mixes for name in mix.antagonists)])
    members = {name: _member(name) for name in names}
    return Cohort(
        id="cohort", protocol=PROTOCOL, native_key="", members=tuple(members.values()), mixes=mixes,
        scenes=scenes_of(mixes, members),
    )  # fmt: skip


def _member(name: str) -> Member:
    workload, _, cpu = name.partition("@")
    return Member(
        name=name, workload=workload, role="lead" if name == LEAD else "antagonist", cpus=(int(cpu),), nodes=(),
        command=(workload,), environment=None, environment_key=None, content="", progress="heartbeat", unit="step",
        variables={}, ready_within=1,
    )  # fmt: skip


COHORTS = {cohort.__name__: cohort for cohort in (two_mixes, three_mixes, one_partition)}
