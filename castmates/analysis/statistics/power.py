"""What so many launches can show: the smallest detectable effect, and the launches that a precision takes.

Without pandas, as is the way from the logarithm of a slowdown to the loss in per cent of the rate alone, and back.
"""

import math
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist

# Quantiles of Student's t from the standard library: `castmates plan` and `show` need a few, and do without scipy.
#
# T exceeds `reach` where a standard normal, moved by `shift`, exceeds reach * S; S is the estimated over the true
# standard deviation, and independent of it. So the chance is a mean over S, which is summed at equal steps of log S:
# that is exact to rounding where steps are small beside both factors.

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


POWER = 0.8  # of finding an effect of the detectable size


def detectable(variance: float, launches: int, level: float = 1 - CONFIDENCE) -> float:
    """The smallest loss (log scale) that a two-sided t-test over so many launch means of this variance mostly finds."""
    if launches < FEWEST_LAUNCHES:
        return math.inf
    reach = quantile(level / 2, launches - 1)
    return shift(reach, launches - 1, POWER) * math.sqrt(variance / launches)


def chance_within(spread: float, launches: int, log: float, edge: float) -> float:
    """How often the interval of so many launch means lies whole between -edge and edge, where the truth is `log`.

    The mean is normal, and the spread that the interval is made of is independent of it.
    """
    if launches < FEWEST_LAUNCHES or spread <= 0:
        return float(launches >= FEWEST_LAUNCHES and abs(log) <= edge)
    error, reach = spread / math.sqrt(launches), two_sided(launches - 1)
    chance = 0.0
    for scale, weight in scales(launches - 1, 4 * reach):  # the interval that just fits is a kink
        room = edge / error - reach * scale  # that is left to the mean, in standard errors
        if room > 0:
            chance += weight * (NORMAL.cdf(room - log / error) - NORMAL.cdf(-room - log / error))
    return chance


def half_width(variance: float, launches: int, log: float = 0.0) -> float:
    """Half-width of the interval of a slowdown (of this logarithm) with so many launches."""
    if launches < FEWEST_LAUNCHES:
        return math.inf
    return math.exp(log) * math.sinh(two_sided(launches - 1) * math.sqrt(variance / launches))


def launches_for(variance: float, wanted: float, most: int, log: float = 0.0) -> int | None:
    """How many launches give this half-width; None where it takes more than `most`."""
    return next((n for n in range(FEWEST_LAUNCHES, most + 1) if half_width(variance, n, log) <= wanted), None)


def loss_pct(log: float) -> float:
    """What is lost of the rate."""
    return -100 * math.expm1(-log)


def log_of(pct: float) -> float:
    """The logarithm of the slowdown."""
    return -math.log1p(-pct / 100)
