"""Quantiles of Student's t from the standard library: `castmates plan` and `show` need a few, and do without scipy.

T exceeds `reach` where a standard normal, moved by `shift`, exceeds reach * S; S is the estimated over the true
standard deviation, and independent of it. So the chance is a mean over S, which is summed at equal steps of log S: that
is exact to rounding where steps are small beside both factors.
"""

import math
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist

CONFIDENCE = 0.95
FEWEST_LAUNCHES = 3  # with two, one degree of freedom is left and the interval shows next to nothing
NORMAL = NormalDist()
CLOSE = 1e-9  # relative size of the last step: after it, Newton is exact to rounding
NEGLIGIBLE = 1e-22  # beside the weight of S = 1


@cache
def quantile(chance: float, freedom: float) -> float:
    """What T exceeds with this chance (below a half)."""
    reach = -NORMAL.inv_cdf(chance)
    while True:
        tail = slope = 0.0
        for scale, weight in scales(freedom, reach):
            tail += weight * NORMAL.cdf(-reach * scale)
            slope += weight * scale * NORMAL.pdf(reach * scale)
        factor = math.exp(math.log(tail / chance) * tail / (reach * slope))  # on logarithms it is almost straight
        reach *= factor
        if abs(factor - 1) < CLOSE:
            return reach


def two_sided(freedom: float) -> float:
    """The factor of an interval's half-width."""
    return quantile((1 - CONFIDENCE) / 2, freedom)


@cache
def shift(reach: float, freedom: float, power: float) -> float:
    """By how many standard errors the mean must be off zero for T to exceed `reach` with the chance `power`."""
    wanted, found = NORMAL.inv_cdf(power), reach
    while True:
        tail = slope = 0.0
        for scale, weight in scales(freedom, max(reach, found)):
            tail += weight * NORMAL.cdf(found - reach * scale)
            slope += weight * NORMAL.pdf(found - reach * scale)
        seen = NORMAL.inv_cdf(tail)
        step = (wanted - seen) * NORMAL.pdf(seen) / slope  # as normal quantiles it is almost straight
        found += step
        if abs(step) < CLOSE * found:
            return found


def scales(freedom: float, steepest: float) -> Iterator[tuple[float, float]]:
    """Values of S with their weights, close enough for a normal tail that is so steep in log S."""
    step = 0.3 / max(math.sqrt(2 * freedom), steepest)
    half = freedom / 2
    density = 2 * math.exp(half * math.log(half) - half - math.lgamma(half))  # of log S, at S = 1
    for log, apart in ((0.0, step), (-step, -step)):
        while (weight := math.exp(freedom * log - half * math.expm1(2 * log))) > NEGLIGIBLE:
            yield math.exp(log), weight * density * step
            log += apart
