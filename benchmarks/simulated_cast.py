"""Who plays in simulated studies, and when: companies of seven scenes, and the rounds that our schedule gives them."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of
from castmates.study.schedule import stretches
from castmates.study.spec import PROTOCOL, REST, Block, Company, Member, Mix, Partition, Plan, Share

LEAD, FIRST, SECOND = "lead@0", "first@1", "second@1"
SPLIT = "split-4"
CYCLES = 12  # of a stretch: slices of a window
ORDERS = 500  # rounds of our schedule, from which every simulated round draws one
QUIET = ("solo", "solo-again")

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@cache
def two_mixes() -> Company:
    """A lead beside each of two antagonists, in one stretch."""
    return _company(_mix(FIRST), _mix(SECOND))


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
    """Rounds of a company, slice after slice."""

    length: int  # slices of a round, with those that are left out at the begin of a stretch
    places: Counts  # round x cycle x scene: which of them is the scene's
    after_others: Flags  # the same: whether others than the lead ran in the one before
    stretch: Counts  # of each scene, from 0


@cache
def schedule(which: str) -> Schedule:
    """What our scheduler gives the company `two_mixes` or `one_partition`."""
    company = two_mixes() if which == two_mixes.__name__ else one_partition()
    block, numbers = plan_of(company, 1).blocks[0], {scene.name: at for at, scene in enumerate(company.scenes)}
    parts = sorted(stretches(block, 0), key=lambda part: part.seed)
    stretch = np.array([next(at for at, part in enumerate(parts) if scene in part.scenes) for scene in company.scenes])
    shape = (ORDERS, CYCLES, len(numbers))
    places, after = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    place = 0
    for number in range(ORDERS):
        place = 0
        for part in stretches(block, number):
            if len(parts) > 1:  # masks have changed: every scene runs once unmeasured
                place += len(part.scenes)
            others = False
            for cycle, order in enumerate(part.cycles(CYCLES)):
                for scene in order:  # of a solo that comes twice, the later slice is played alone: intervals are wider
                    at = number, cycle, numbers[scene.name]
                    places[at], after[at] = place, others
                    place, others = place + 1, scene.kind not in QUIET
    return Schedule(place, places, after, stretch)


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
