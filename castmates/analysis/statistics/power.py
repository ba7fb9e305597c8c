"""What so many launches can show: the smallest detectable effect, and the launches that a precision takes.

Without pandas, as is the way from the logarithm of a slowdown to the loss in per cent of the rate alone, and back.
"""

import math

from castmates.analysis.statistics import student
from castmates.analysis.statistics.student import CONFIDENCE, FEWEST_LAUNCHES, NORMAL

POWER = 0.8  # of finding an effect of the detectable size


def detectable(variance: float, launches: int, level: float = 1 - CONFIDENCE) -> float:
    """The smallest loss (log scale) that a two-sided t-test over so many launch means of this variance mostly finds."""
    if launches < FEWEST_LAUNCHES:
        return math.inf
    reach = student.quantile(level / 2, launches - 1)
    return student.shift(reach, launches - 1, POWER) * math.sqrt(variance / launches)


def chance_within(spread: float, launches: int, log: float, edge: float) -> float:
    """How often the interval of so many launch means lies whole between -edge and edge, where the truth is `log`.

    The mean is normal, and the spread that the interval is made of is independent of it.
    """
    if launches < FEWEST_LAUNCHES or spread <= 0:
        return float(launches >= FEWEST_LAUNCHES and abs(log) <= edge)
    error, reach = spread / math.sqrt(launches), student.two_sided(launches - 1)
    chance = 0.0
    for scale, weight in student.scales(launches - 1, 4 * reach):  # the interval that just fits is a kink
        room = edge / error - reach * scale  # that is left to the mean, in standard errors
        if room > 0:
            chance += weight * (NORMAL.cdf(room - log / error) - NORMAL.cdf(-room - log / error))
    return chance


def half_width(variance: float, launches: int, log: float = 0.0) -> float:
    """Half-width of the interval of a slowdown (of this logarithm) with so many launches."""
    if launches < FEWEST_LAUNCHES:
        return math.inf
    return math.exp(log) * math.sinh(student.two_sided(launches - 1) * math.sqrt(variance / launches))


def launches_for(variance: float, wanted: float, most: int, log: float = 0.0) -> int | None:
    """How many launches give this half-width; None where it takes more than `most`."""
    return next((n for n in range(FEWEST_LAUNCHES, most + 1) if half_width(variance, n, log) <= wanted), None)


def loss_pct(log: float) -> float:
    """What is lost of the rate."""
    return -100 * math.expm1(-log)


def log_of(pct: float) -> float:
    """The logarithm of the slowdown."""
    return -math.log1p(-pct / 100)
