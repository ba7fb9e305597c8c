"""A made-up study with partitions: its plan, and windows that obey simple laws. Nothing in it was measured."""

import math

import numpy as np

from castmates.study.spec import REST, Mix, Partition, Plan, Share
from tests.unit.caches import cache
from tests.unit.windows_maker import cohort, mix, plan, written

WAYS = 12
LEAD, STREAM = "dlrm@0", "stream@1"


def split(ways: int, lead: str = LEAD, antagonist: str = STREAM) -> Partition:
    own = (1 << ways) - 1
    others = ((1 << WAYS) - 1) & ~own
    shares = (Share(member=lead, ways=own), Share(member=antagonist, ways=others), Share(member=REST, ways=others))
    return Partition(name=f"split-{ways}", shares=shares, curve="split")


def capped(ways: int, antagonist: str = STREAM) -> Partition:
    return Partition(name=f"cap-{ways}", shares=(Share(member=antagonist, ways=((1 << ways) - 1) << (WAYS - ways)),))


def alone(ways: int, lead: str = LEAD) -> Partition:
    return Partition(name=f"lead-{ways}", shares=(Share(member=lead, ways=(1 << ways) - 1),), curve="lead")


def under(one: Mix, partition: Partition) -> Mix:
    """The mix under a partition, as the plan has it: a separate mix."""
    return one.model_copy(update={"identity": f"{one.identity}/{partition.name}", "partitions": (partition,)})


def atoms(lead: str = LEAD, antagonist: str = STREAM, ways=(2, 4, 8), caps=(2,), sensitivity=(2, 6)) -> list[Mix]:
    """A mix, its partitions, and its lead alone under partitions."""
    one = mix(lead, antagonist)
    bare = Mix(name=lead.partition("@")[0], identity=lead, lead=lead, antagonists=())
    return [
        one,
        *(under(one, split(count, lead, antagonist)) for count in ways),
        *(under(one, capped(count, antagonist)) for count in caps),
        *(under(bare, alone(count, lead)) for count in sensitivity),
    ]


def made(*groups: list[Mix], launches: int = 4) -> Plan:
    """A cohort for each group of mixes."""
    one = plan([cohort(f"c{number}", *group) for number, group in enumerate(groups, start=1)], launches=launches)
    return one.model_copy(update={"cache": cache(WAYS, shareable=0)})


def loss(scene: str, member: str) -> float:
    """What a member loses in a scene, in log units: its own share costs 0.4 / ways, the antagonist 0.3 / (1 + ways)."""
    kind, _, tail = scene.partition(":") if ":" in scene else (scene.partition("@")[0], "", scene)
    name = tail.rpartition("@")[2] if "@" in tail else ""
    ways = int(name.rpartition("-")[2]) if name.startswith(("split", "lead")) else None
    if member.partition("@")[0] in ("stream", "chase"):
        return 0.0 if kind == "antagonist-alone" else 0.25
    found = 0.4 / ways if ways else 0.0
    if kind == "placebo":
        return found + 0.02
    if kind != "corun":
        return found
    return found + 0.02 + (0.1 if name.startswith("cap") else 0.3 / (1 + (ways or 0)))


def windows(of: Plan, noise: float = 0.0, platform: str = "measured", rounds: int = 2):
    """Windows whose rates obey `loss`, with as much noise between launches and windows."""
    rng = np.random.default_rng(5)
    launches = {}

    def rate(launch, number, scene, member):
        moved = launches.setdefault((launch.path, scene, member), rng.normal(0, noise) if noise else 0.0)
        return 100 * math.exp(-loss(scene, member) + moved + (rng.normal(0, noise) if noise else 0.0))

    return written(of, rate, rounds, platform)
