"""What so many blocks can show: the smallest detectable effect, and the blocks that a precision takes."""

import math

from castmates.analysis.statistics import student
from castmates.analysis.statistics.student import CONFIDENCE, FEWEST_BLOCKS, NORMAL

POWER = 0.8  # of finding an effect of the detectable size


def detectable(variance: float, blocks: int, level: float = 1 - CONFIDENCE) -> float:
    """The smallest loss (log scale) that a two-sided t-test over so many block means of this variance mostly finds."""
    if blocks < FEWEST_BLOCKS:
        return math.inf
    reach = student.quantile(level / 2, blocks - 1)
    return student.shift(reach, blocks - 1, POWER) * math.sqrt(variance / blocks)


def chance_within(spread: float, blocks: int, log: float, edge: float) -> float:
    """How often the interval of so many block means lies whole between -edge and edge, where the truth is `log`.

    The mean is normal, and the spread that the interval is made of is independent of it.
    """
    if blocks < FEWEST_BLOCKS or spread <= 0:
        return float(blocks >= FEWEST_BLOCKS and abs(log) <= edge)
    error, reach = spread / math.sqrt(blocks), student.two_sided(blocks - 1)
    chance = 0.0
    for scale, weight in student.scales(blocks - 1, 4 * reach):  # the interval that just fits is a kink
        room = edge / error - reach * scale  # that is left to the mean, in standard errors
        if room > 0:
            chance += weight * (NORMAL.cdf(room - log / error) - NORMAL.cdf(-room - log / error))
    return chance


def half_width(variance: float, blocks: int, log: float = 0.0) -> float:
    """Half-width of the interval of a slowdown (of this logarithm) with so many blocks."""
    if blocks < FEWEST_BLOCKS:
        return math.inf
    return math.exp(log) * math.sinh(student.two_sided(blocks - 1) * math.sqrt(variance / blocks))


def blocks_for(variance: float, wanted: float, most: int, log: float = 0.0) -> int | None:
    """How many blocks give this half-width; None where it takes more than `most`."""
    return next((n for n in range(FEWEST_BLOCKS, most + 1) if half_width(variance, n, log) <= wanted), None)
