"""How far the caches were emptied before stretches, in a sentence of the health panel."""

from collections.abc import Sequence
from statistics import median

from castmates.report.facts import EvictionFacts
from castmates.report.text.words import counted, number


def eviction_sentence(blocks: Sequence[EvictionFacts]) -> str:
    """How often caches were emptied, and what members held of them then; "" where no block did it."""
    times = sum(block.times for block in blocks)
    if not times:
        return ""
    what = f"Last-level caches were emptied before each of {counted(times, 'stretch')}"
    left = [block.left for block in blocks if block.left is not None]
    most = [block.left_most for block in blocks if block.left_most is not None]
    if not left or not most:
        return f"{what}; how much members then held of them could not be read."
    shares = f"{number(100 * median(left))} % (median), {number(100 * max(most))} % at most"
    sentence = f"{what}; members then held {shares}."
    full = sum(block.not_emptied for block in blocks)
    if full:
        sentence += f" Too much was left before {full} of them: scenes there did not begin with an empty cache."
    return sentence
