"""In which order a block measures its scenes: a fresh random order for every round, from the block's seed."""

import random

from castmates.study.spec import Block, Scene


def round_order(block: Block, number: int) -> list[Scene]:
    """All scenes of the block's company in the order of this round (spare rounds have their own)."""
    order = list(block.company.scenes)
    random.Random(f"{block.seed}/{number}").shuffle(order)
    return order


def block_seed(study_seed: int, company: str, number: int) -> int:
    """A seed that is the block's own and stays the same when the study grows."""
    return random.Random(f"{study_seed}/{company}/{number}").getrandbits(32)


def block_priority(seed: int, number: int) -> int:
    """Snakemake runs high priorities first: all first blocks, then all second ones, shuffled within."""
    return 1_000_000 - number * 1000 + random.Random(seed).randrange(1000)
