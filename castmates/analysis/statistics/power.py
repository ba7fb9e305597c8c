"""What so many blocks can show: the smallest detectable effect, and the blocks that a precision takes."""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from castmates.analysis.statistics.intervals import CONFIDENCE, FEWEST_BLOCKS

POWER = 0.8  # of finding an effect of the detectable size
_QUANTILES = (np.arange(100) + 0.5) / 100


def detectable(variance: float, blocks: int, level: float = 1 - CONFIDENCE) -> float:
    """The smallest loss (log scale) that a two-sided t-test over so many block means of this variance mostly finds."""
    return _shift(blocks, level) * math.sqrt(variance / blocks) if blocks >= FEWEST_BLOCKS else math.inf


@lru_cache(maxsize=4096)
def _shift(blocks: int, level: float) -> float:
    """The detectable effect in standard errors."""
    from scipy import optimize, stats

    freedom = blocks - 1
    reach = float(special.stdtrit(freedom, 1 - level / 2))

    def missing(shift: float) -> float:
        return float(stats.nct.sf(reach, freedom, shift)) - POWER

    return float(optimize.brentq(missing, 0.0, 4 * reach + 4))


def chance_within(spread: float, blocks: int, log: float, edge: float) -> float:
    """How often the interval of so many block means lies whole between -edge and edge, where the truth is `log`.

    The mean is normal, and the spread that the interval is made of is independent of it: its chance is taken at 100
    quantiles.
    """
    if blocks < FEWEST_BLOCKS or spread <= 0:
        return float(blocks >= FEWEST_BLOCKS and abs(log) <= edge)
    error, freedom = spread / math.sqrt(blocks), blocks - 1
    seen = np.sqrt(special.chdtri(freedom, 1 - _QUANTILES) / freedom)
    room = edge - float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error * seen  # that is left to the mean
    chances = special.ndtr((room - log) / error) - special.ndtr((-room - log) / error)
    return float(np.maximum(chances, 0.0).mean())


def half_width(variance: float, blocks: int, log: float = 0.0) -> float:
    """Half-width of the interval of a slowdown (of this logarithm) with so many blocks."""
    if blocks < FEWEST_BLOCKS:
        return math.inf
    half = float(special.stdtrit(blocks - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance / blocks)
    return math.exp(log) * math.sinh(half)


def blocks_for(variance: float, wanted: float, most: int, log: float = 0.0) -> int | None:
    """How many blocks give this half-width; None where it takes more than `most`."""
    return next((n for n in range(FEWEST_BLOCKS, most + 1) if half_width(variance, n, log) <= wanted), None)
