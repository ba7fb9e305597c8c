"""In which order a block measures its scenes: fresh random orders for every round, from the block's seed.

Masks are slow to change and members quick to freeze, so a round goes from partition to partition in stretches. In a
stretch its scenes alternate in many short cycles, each of which has every scene once.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castmates.study.spec import Block, Scene, Share


@dataclass(frozen=True)
class Stretch:
    """The scenes of a round that are measured under the same shares of the cache."""

    shares: tuple[Share, ...]
    scenes: tuple[Scene, ...]
    seed: str

    def cycles(self, count: int) -> Iterator[list[Scene]]:
        """Yield so many orders of the scenes, in which each follows each other one about equally often."""
        dice, follows = random.Random(self.seed), Counter[tuple[str, str]]()
        before = ""
        for _ in range(count):
            order = _next_order(self.scenes, before, follows, dice)
            yield order
            before = order[-1].name


def stretches(block: Block, round_number: int) -> list[Stretch]:
    """The stretches of this round in their random order (spare rounds have their own)."""
    by_shares: dict[tuple[Share, ...], list[Scene]] = {}
    for scene in block.company.scenes:
        by_shares.setdefault(scene.shares, []).append(scene)
    seed = f"{block.seed}/{round_number}"
    parts = [Stretch(shares, tuple(scenes), f"{seed}/{n}") for n, (shares, scenes) in enumerate(by_shares.items())]
    random.Random(seed).shuffle(parts)
    return parts


def _next_order(
    scenes: Sequence[Scene], before: str, follows: Counter[tuple[str, str]], dice: random.Random
) -> list[Scene]:
    """An order of all scenes that goes on, at each place, with one that has followed its neighbour least often."""
    left = list(scenes)
    dice.shuffle(left)
    order = []
    while left:
        # None follows itself while there is another: that would be one long slice.
        scene = min(left, key=lambda each: (each.name == before, follows[before, each.name]))
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
