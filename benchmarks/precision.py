"""How much measuring a wanted half-width takes, by each way of measuring, and whether two ways agree.

Effects are losses on the log scale, log rate(alone) - log rate(co-run); intervals are Student's at 95 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import stats

from castmates.analysis.statistics.intervals import CONFIDENCE, FEWEST_LAUNCHES

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

MOST = 2.0**40  # units; who needs more is never there
DRAWS = 100_000  # of variances, where an interval is simulated
AT_ONCE = 2_000  # draws that are held in memory
DRAWN_SURELY = 0.999  # how surely the ends of a simulated interval are no nearer than the true ones
EQUIVALENCE_LEVEL = 0.05


@dataclass(frozen=True)
class Mean:
    """An estimate with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Of the 95 % interval."""
        return float(self.error * stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom))


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference against a margin."""

    difference: float
    low: float  # of the 90 % interval, which lies within the margin exactly when p is below 5 %
    high: float
    p_value: float
    margin: float

    @property
    def verdict(self) -> str:
        """What it shows."""
        if self.p_value < EQUIVALENCE_LEVEL:
            return "agree"
        if self.low > self.margin or self.high < -self.margin:
            return "differ"
        return "not shown"


class Way(Protocol):
    """What one way of measuring gave, by mix, and what it would take by it."""

    def effect(self, mix: int) -> Mean:
        """Estimate the loss of a mix."""

    def needed(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """Units that each mix needs for this half-width: a row, or with `rng` a row for each variance that may be."""

    def seconds(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """Machine-seconds until every mix has this half-width, in the same way."""


@dataclass(frozen=True)
class Paired:
    """Units that give one difference for every mix at once: launches, or cycles of runs."""

    differences: Floats  # units x mixes
    costs: Floats  # seconds, by unit

    def effect(self, mix: int) -> Mean:
        """Estimate from the units' differences."""
        return mean_of(self.differences[:, mix])

    def needed(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """Units."""
        return units_needed(_variances(self.differences, rng, times), target)

    def seconds(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """The mix that needs most units decides."""
        worst = _variances(self.differences, rng, times).max(axis=1)
        return np.asarray(units_needed(worst, target) * self.costs.mean())


@dataclass(frozen=True)
class Apart:
    """Single runs: some of the lead alone, others of each mix."""

    alone: Floats  # log rate of the lead, by run
    coruns: Sequence[Floats]  # by mix, by run
    alone_costs: Floats
    corun_costs: Sequence[Floats]

    def effect(self, mix: int) -> Mean:
        """Estimate by Welch's interval, which ignores the pairs of runs."""
        return minus(mean_of(self.alone), mean_of(self.coruns[mix]))

    def needed(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """Runs of the mix, and as many of the lead alone."""
        alone = _variances(self.alone[:, None], rng, times)[:, 0]
        columns = []
        for one in self.coruns:
            corun = _variances(one[:, None], rng, times)[:, 0]
            both = alone + corun
            # With as many runs of each, Welch's degrees of freedom are this factor times (n - 1).
            squares = alone**2 + corun**2
            factor = np.where(squares > 0, both**2 / np.where(squares > 0, squares, 1.0), 2.0)
            columns.append(units_needed(both, target, factor))
        return np.stack(columns, axis=1)

    def seconds(self, target: float, rng: Rng | None = None, times: int = 1) -> Floats:
        """Alone runs serve every mix: as many as the mix that needs most of them asks for."""
        needed = self.needed(target, rng, times)
        total = needed.max(axis=1) * self.alone_costs.mean()
        for mix, costs in enumerate(self.corun_costs):
            total = total + needed[:, mix] * costs.mean()
        return np.asarray(total)


def mean_of(values: Floats) -> Mean:
    """The mean of independent values."""
    count = len(values)
    return Mean(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(count)), count - 1.0)


def minus(one: Mean, other: Mean) -> Mean:
    """The difference of two independent means, with Welch's degrees of freedom."""
    squares = one.error**2, other.error**2
    below = squares[0] ** 2 / one.freedom + squares[1] ** 2 / other.freedom
    freedom = sum(squares) ** 2 / below if below > 0 else one.freedom + other.freedom
    return Mean(one.value - other.value, float(np.sqrt(sum(squares))), freedom)


def points(loss: Mean) -> Mean:
    """A loss on the log scale as per cent of the rate, which is what `loss_pct` is."""
    left = float(np.exp(-loss.value))
    return Mean(100 * (1 - left), 100 * left * loss.error, loss.freedom)


def equivalence(difference: Mean, margin: float) -> Equivalence:
    """Test whether a difference is smaller than the margin (two one-sided tests at 5 %)."""
    half = float(difference.error * stats.t.ppf(1 - EQUIVALENCE_LEVEL, difference.freedom))
    distance = margin - abs(difference.value)  # the nearer end decides: its p-value is the larger one
    if difference.error > 0:
        p_value = float(stats.t.sf(distance / difference.error, difference.freedom))
    else:
        p_value = 0.0 if distance > 0 else 1.0
    return Equivalence(difference.value, difference.value - half, difference.value + half, p_value, margin)


def units_needed(variance: Floats, target: float, factor: Floats | float = 1.0) -> Floats:
    """The smallest whole n with t(0.975, factor x (n - 1)) x sqrt(variance / n) <= target; at least three."""
    variance, factor = np.broadcast_arrays(np.asarray(variance, dtype=float), np.asarray(factor, dtype=float))
    low = np.full(variance.shape, float(FEWEST_LAUNCHES))
    high = np.full(variance.shape, MOST)
    high = np.where(half_width(variance, low, factor) <= target, low, high)
    # Halving on the log scale until no whole number lies between; the half-width falls with n.
    while np.any(high - low > 1):
        middle = np.clip(np.floor(np.sqrt(low * high)), low + 1, np.maximum(high - 1, low + 1))
        enough = half_width(variance, middle, factor) <= target
        open_ = high - low > 1
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle, low)
    return high


def half_width(variance: Floats, units: Floats, factor: Floats | float = 1.0) -> Floats:
    """Of the 95 % interval of a mean of so many units."""
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, factor * (units - 1))
    return np.asarray(quantile * np.sqrt(variance / units), dtype=float)


def interval(samples: Floats) -> tuple[float, float]:
    """The middle 95 % of what was drawn, widened by what another draw could move its ends by (binomial).

    An end that lies beside an aim by luck of the draw would else decide a verdict.
    """
    ordered, tail = np.sort(samples), (1 - CONFIDENCE) / 2
    outside = max(0, int(stats.binom.ppf((1 - DRAWN_SURELY) / 2, len(ordered), tail)) - 1)
    return float(ordered[outside]), float(ordered[-1 - outside])


def _variances(values: Floats, rng: Rng | None, times: int) -> Floats:
    """Variances over the units (rows), by column; with `rng` rows of those that may have given the ones found.

    Normal scatter is taken for granted, as Student's interval does: so few units cannot show another one, and the
    bootstrap of a variance from few of them is too narrow. Columns hang together as they were found to.
    """
    found = np.var(values, axis=0, ddof=1)[None, :]
    if rng is None:
        return np.asarray(found)
    count = len(values)
    root = np.linalg.qr((values - values.mean(axis=0)) / np.sqrt(count - 1), mode="r")
    portions = [min(AT_ONCE, times - done) for done in range(0, times, AT_ONCE)]
    again = np.concatenate(
        [np.var(rng.standard_normal((portion, count, len(root))) @ root, axis=1, ddof=1) for portion in portions]
    )
    return np.asarray(np.divide(found**2, again, out=np.zeros_like(again), where=again > 0))
