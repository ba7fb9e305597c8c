"""In which order a block measures its scenes: fresh random orders for every round, from the block's seed.

Masks are slow to change and members quick to freeze, so a round goes from partition to partition in stretches. In a
stretch its scenes alternate in many short cycles, each of which has every scene once, and a solo that many scenes are
compared with twice: its error is in all of their losses.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castmates.study.spec import REST, Block, Company, Member, Scene, Share

MANY = 4  # scenes of a lead that are compared with one solo, from which on it comes twice in a cycle


@dataclass(frozen=True)
class Stretch:
    """The scenes of a round that alternate under the same shares of the cache."""

    shares: tuple[Share, ...]
    scenes: tuple[Scene, ...]
    seed: str

    def cycles(self, count: int) -> Iterator[list[Scene]]:
        """Yield so many orders of the scenes, in which each follows each other one about equally often.

        The last one has every scene once.
        """
        dice, follows = random.Random(self.seed), Counter[tuple[str, str]]()
        before, twice = "", self._twice()
        for number in range(1, count + 1):
            scenes = [*self.scenes, *twice] if number < count else self.scenes
            order = _next_order(scenes, before, follows, dice)
            yield order
            before = order[-1].name

    @property
    def turns(self) -> int:
        """How many slices a cycle has."""
        return len(self.scenes) + len(self._twice())

    def _twice(self) -> list[Scene]:
        against = Counter(scene.active[0] for scene in self.scenes if scene.kind != "solo")
        return [scene for scene in self.scenes if scene.kind == "solo" and against[scene.active[0]] >= MANY]


def stretches(block: Block, round_number: int) -> list[Stretch]:
    """The stretches of this round in their random order (spare rounds have their own)."""
    seed = f"{block.seed}/{round_number}"
    parts = [
        Stretch(tuple(shares), tuple(scenes), f"{seed}/{number}")
        for number, (shares, scenes) in enumerate(_together(block.company.scenes, block.company.members))
    ]
    random.Random(seed).shuffle(parts)
    return parts


def turns_of(scenes: Iterable[Scene], members: Iterable[Member]) -> int:
    """How many slices the cycles of these scenes have, all stretches together."""
    return sum(Stretch((), tuple(part), "").turns for _, part in _together(scenes, members))


def stretch_of(company: Company) -> dict[str, int]:
    """By scene: the number of its stretch; scenes with the same one alternate, all others lie apart in a round."""
    return {
        scene.name: number
        for number, (_, scenes) in enumerate(_together(company.scenes, company.members))
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


def _next_order(
    scenes: Sequence[Scene], before: str, follows: Counter[tuple[str, str]], dice: random.Random
) -> list[Scene]:
    """An order of all scenes that goes on, at each place, with one that has followed its neighbour least often."""
    left = list(scenes)
    dice.shuffle(left)
    order = []
    while left:
        # None follows itself while there is another: that would be one long slice. What is left twice must not wait.
        twice = {each.name for each in left if 2 * left.count(each) > len(left)}
        scene = min(left, key=lambda each: (each.name == before, each.name not in twice, follows[before, each.name]))
        left.remove(scene)
        follows[before, scene.name] += 1
        order.append(scene)
        before = scene.name
    return order


def round_order(block: Block, number: int) -> list[Scene]:
    """All scenes of the block's company in a random order of this number."""
    order = list(block.company.scenes)
    random.Random(f"{block.seed}/{number}").shuffle(order)
    return order


def block_seed(study_seed: int, company: str, number: int) -> int:
    """A seed that is the block's own and stays the same when the study grows."""
    return random.Random(f"{study_seed}/{company}/{number}").getrandbits(32)


def block_priority(seed: int, number: int) -> int:
    """Snakemake runs high priorities first: all first blocks, then all second ones, shuffled within."""
    return 1_000_000 - number * 1000 + random.Random(seed).randrange(1000)
