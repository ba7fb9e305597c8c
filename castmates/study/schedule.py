"""In which order a launch measures its scenes: random orders from the launch's seed, balanced over the whole launch.

Masks are slow to change and members quick to freeze, so a round goes from partition to partition in stretches. In a
stretch its scenes alternate in many short cycles, each of which has every scene once, and twice a scene `alone` that
many scenes are compared with: its error is in all of their losses.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from castmates.study.spec import REST, Cohort, Launch, Member, Scene, Share

MANY = 4  # scenes of a lead that are compared with one scene `alone`, from which on it comes twice in a cycle
SWAPS = 10  # tries to make an order more even, for each of its slices
FROZEN, OF_LEAD = 10.0, 3.0  # what it counts that a member was frozen before, and more so the lead, against who ran
NEVER = 1e6  # the same of a scene that follows itself: that would be one long slice
NOTHING = ""  # runs before the first slice of a stretch

Pair = tuple[str, str]  # names of a scene and of the one after it


@dataclass(frozen=True)
class Stretch:
    """The scenes of a round that alternate under the same shares of the cache."""

    shares: tuple[Share, ...]
    scenes: tuple[Scene, ...]
    seed: str

    @cached_property
    def twice(self) -> tuple[Scene, ...]:
        """The scenes `alone` that come twice in a cycle."""
        against = Counter(scene.active[0] for scene in self.scenes if scene.kind != "alone")
        return tuple(each for each in self.scenes if each.kind == "alone" and against[each.active[0]] >= MANY)

    @property
    def turns(self) -> int:
        """How many slices a cycle has."""
        return len(self.scenes) + len(self.twice)


class Orders:
    """Draws the orders of a launch, and remembers what came after what in all of its rounds, spare ones too.

    A slice after one in which a member was frozen is slower. So each scene of a member gets the same share of such
    slices, and as far as possible each of its predecessors equally often.
    """

    def __init__(self) -> None:
        self._met = Counter[Pair]()

    def draw(self, stretch: Stretch, cycles: int, slow: Collection[str] = ()) -> list[list[Scene]]:
        """So many orders; the last one has each scene once, and alone has those that a slow member ends."""
        dice, before, orders = random.Random(stretch.seed), NOTHING, list[list[Scene]]()
        often = [scene for scene in (*stretch.scenes, *stretch.twice) if scene.active[0] not in slow]
        for number in range(1, cycles + 1):
            order = list(stretch.scenes if number == cycles else often)
            dice.shuffle(order)
            self._make_even(order, before, stretch, dice)
            for scene in order:
                self._met[before, scene.name] += 1
                before = scene.name
            orders.append(order)
        return orders

    def _make_even(self, order: list[Scene], before: str, stretch: Stretch, dice: random.Random) -> None:
        """Swap slices at random, and keep each swap after which the launch is not less even."""
        balance = _Balance(stretch, self._met)
        least = balance.unevenness(order, before)
        for _ in range(SWAPS * len(order) if len(order) > 1 else 0):
            one, other = dice.randrange(len(order)), dice.randrange(len(order))
            if order[one] is not order[other]:
                order[one], order[other] = order[other], order[one]
                if (now := balance.unevenness(order, before)) <= least:
                    least = now
                else:
                    order[one], order[other] = order[other], order[one]


class _Balance:
    """What came after what in a stretch so far, and how uneven an order of its next cycle would make it."""

    def __init__(self, stretch: Stretch, met: Mapping[Pair, int]) -> None:
        self._met, scenes = met, stretch.scenes
        self._weight = Counter([NOTHING, *(each.name for each in (*scenes, *stretch.twice))])
        leads = {scene.active[0] for scene in scenes if scene.kind != "antagonist-alone"}
        names = {name for scene in scenes for name in scene.active}
        self._importance = {name: FROZEN * (OF_LEAD if name in leads else 1.0) for name in names}
        # By two scenes: each member of the second one, there, and whether the first one froze it.
        self._effects = {
            (before.name, scene.name): [((name, scene.name), name not in before.active) for name in scene.active]
            for before in scenes
            for scene in scenes
        }
        # By member and scene: slices that have one before them, and those of them before which it was frozen.
        self._slices = {(name, scene.name): 0 for scene in scenes for name in scene.active}
        self._frozen = dict(self._slices)
        for pair, effects in self._effects.items():
            for place, was_frozen in effects:
                self._slices[place] += met.get(pair, 0)
                self._frozen[place] += was_frozen * met.get(pair, 0)

    def unevenness(self, order: Sequence[Scene], before: str) -> float:
        """How unevenly, after this order, members were frozen before their scenes, and scenes came after each other."""
        slices, frozen, pairs, uneven = dict(self._slices), dict(self._frozen), Counter[Pair](), 0.0
        for scene in order:
            pair, before = (before, scene.name), scene.name
            pairs[pair] += 1
            for place, was_frozen in self._effects.get(pair, ()):
                slices[place] += 1
                frozen[place] += was_frozen
        for (first, second), count in pairs.items():
            known = self._met.get((first, second), 0)
            uneven += ((known + count) ** 2 - known**2) / (2 * self._weight[first] * self._weight[second])
            uneven += NEVER * count * (first == second)
        all_slices, all_frozen = Counter[str](), Counter[str]()
        for place, count in slices.items():
            all_slices[place[0]] += count
            all_frozen[place[0]] += frozen[place]
        for (name, scene_name), count in slices.items():
            usual = all_frozen[name] / max(all_slices[name], 1)
            off = frozen[name, scene_name] - usual * count
            uneven += self._importance[name] * off**2 / self._weight[scene_name]
        return uneven


def stretches(launch: Launch, round_number: int) -> list[Stretch]:
    """The stretches of this round in their random order (spare rounds have their own)."""
    seed = f"{launch.seed}/{round_number}"
    parts = [
        Stretch(tuple(shares), tuple(scenes), f"{seed}/{number}")
        for number, (shares, scenes) in enumerate(_together(launch.cohort.scenes, launch.cohort.members))
    ]
    random.Random(seed).shuffle(parts)
    return parts


def turns_of(scenes: Iterable[Scene], members: Iterable[Member]) -> int:
    """How many slices the cycles of these scenes have, all stretches together."""
    return sum(Stretch((), tuple(part), "").turns for _, part in _together(scenes, members))


def stretch_of(cohort: Cohort) -> dict[str, int]:
    """By scene: the number of its stretch; scenes with the same one alternate, all others lie apart in a round."""
    return {
        scene.name: number
        for number, (_, scenes) in enumerate(_together(cohort.scenes, cohort.members))
        for scene in scenes
    }


def _together(scenes: Iterable[Scene], members: Iterable[Member]) -> list[tuple[list[Share], list[Scene]]]:
    """Put scenes together that can alternate without a change of masks: a member of several has one share in all.

    Who is frozen takes nothing, so that its share may stand; the rest of the machine is never frozen. Members on one
    CPU have one share too: pqos gives it to the CPU.
    """
    cpus = {member.name: member.cpus for member in members}
    parts: list[_Part] = []
    for scene in scenes:
        shares = {share.member: share for share in scene.shares}
        # Prefetchers are switched for everybody: who asks for nothing would else have those of another scene.
        wants: dict[str | int, Amount] = {"prefetchers": (any(share.prefetchers for share in scene.shares),)}
        for name in (*scene.active, REST):
            wants |= dict.fromkeys((name, *cpus.get(name, ())), _amount(shares.get(name)))
        part = next((part for part in parts if part.allows(wants)), None)
        if part is None:
            parts.append(part := _Part())
        part.amounts |= wants
        part.shares |= shares
        part.scenes.append(scene)
    return [(list(part.shares.values()), part.scenes) for part in parts]


Amount = tuple[int | None, ...]  # ways, ways of code, bandwidth, CPU time and its period


def _amount(share: Share | None) -> Amount:
    share = share or Share(member="")
    return share.ways, share.code, share.bandwidth, share.quota, share.period


@dataclass
class _Part:
    """Scenes that can alternate, and what those have who run in them."""

    amounts: dict[str | int, Amount] = field(default_factory=dict)  # by member, by CPU, and of all
    shares: dict[str, Share] = field(default_factory=dict)
    scenes: list[Scene] = field(default_factory=list)

    def allows(self, wants: Mapping[str | int, Amount]) -> bool:
        """Check whether every member would keep its share."""
        return all(self.amounts.get(who, amount) == amount for who, amount in wants.items())


def round_order(launch: Launch, number: int) -> list[Scene]:
    """All scenes of the launch's cohort in a random order of this number."""
    order = list(launch.cohort.scenes)
    random.Random(f"{launch.seed}/{number}").shuffle(order)
    return order


def launch_seed(study_seed: int, scenes: Iterable[str], number: int) -> int:
    """A seed that is the launch's own and stays the same when the study grows.

    It derives from names alone: a workload's definition and the source of a program are no part of it, so that a study
    draws the same orders, and a modelled one the same numbers, with every version.
    """
    return random.Random(f"{study_seed}/{' '.join(sorted(scenes))}/{number}").getrandbits(32)


def launch_priority(seed: int, number: int) -> int:
    """Snakemake runs high priorities first: all first launches, then all second ones, shuffled within."""
    return 1_000_000 - number * 1000 + random.Random(seed).randrange(1000)
