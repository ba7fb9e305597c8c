"""Values of mixes in launches -> their mean, and the mean over all mixes that could have been drawn, with intervals.

The first interval is of these very mixes: launches are its units, and mixes that share a launch are not independent.
The second one also has the luck of the draw in it. In a balanced draw each workload is in about as many mixes as any
other, so what a workload does to all mixes that it is in is no luck: mixes differ as the residuals of a regression on
who is in a mix. docs/methodology.md has the formulas.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats, quantile

FEWEST_MIXES = 3
FEWEST_FREEDOM = 3  # below, residuals show next to nothing of how mixes differ
Ints = npt.NDArray[np.int64]
NONE = (np.nan, np.nan)


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float
    freedom: float = np.nan

    @property
    def scaled(self) -> tuple[float, float, float]:
        """The mean and the ends."""
        return self.mean, self.low, self.high


class Cohort(NamedTuple):
    """The mixes that share launches, and these (rows)."""

    mixes: Ints
    shares: Floats  # what each launch adds to the error of each mix's mean
    parts: Floats  # the part that each launch has in each mix's mean

    def freedom(self, weights: Floats) -> float:
        """Degrees of freedom: less than launches, where an adaptive study stopped most mixes in the first of them."""
        of_launches = np.square(self.parts @ np.abs(weights))
        return max(float(of_launches.sum() ** 2 / np.square(of_launches).sum()) - 1, 1.0)


@dataclass(frozen=True)
class Launches:
    """A value per mix and launch; all three codes count from 0."""

    mix: Ints
    launch: Ints
    cohort: Ints
    value: Floats

    @cached_property
    def counts(self) -> Floats:
        """How many launches each mix has."""
        return np.bincount(self.mix).astype(float)

    @cached_property
    def means(self) -> Floats:
        """The mean of each mix."""
        return np.bincount(self.mix, self.value) / self.counts

    @cached_property
    def cohorts(self) -> list[Cohort]:
        """The launches of each cohort."""
        return list(self._cohorts())

    @property
    def enough(self) -> bool:
        """Whether every cohort has launches enough for an interval."""
        return all(len(each.shares) >= FEWEST_LAUNCHES for each in self.cohorts)

    def _cohorts(self) -> Iterator[Cohort]:
        shares = (self.value - self.means[self.mix]) / self.counts[self.mix]
        order = np.argsort(self.cohort, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(self.cohort[order])) + 1):
            mixes, columns = np.unique(self.mix[rows], return_inverse=True)
            launches, lines = np.unique(self.launch[rows], return_inverse=True)
            table, parts = np.zeros((2, len(launches), len(mixes)))
            table[lines, columns], parts[lines, columns] = shares[rows], 1 / self.counts[self.mix[rows]]
            table -= table.mean(axis=0)
            own = np.bincount(columns)  # in an adaptive study a mix may be in few of its cohort's launches
            yield Cohort(mixes, table * np.sqrt(own / np.maximum(own - 1, 1)), parts)

    def variance(self, weights: Floats) -> tuple[float, float]:
        """The variance between launches of a weighted sum of the mixes' means, and its degrees of freedom."""
        parts = np.array([np.square(each.shares @ weights[each.mixes]).sum() for each in self.cohorts])
        freedom = np.array([each.freedom(weights[each.mixes]) for each in self.cohorts])
        total = float(parts.sum())
        return total, float(total**2 / (parts**2 / freedom).sum()) if total > 0 else float(freedom.sum())


@dataclass(frozen=True)
class Population:
    """What the mixes were drawn from: who is in each mix (columns), and in all of them on average."""

    rows: Floats  # a row per mix
    average: Floats
    share: Floats  # of the possible mixes like each mix, those that were drawn

    @property
    def estimable(self) -> bool:
        """Whether the mixes show what the average would be, and how far they are from what is expected."""
        missed = np.square(self.average - self.rows.T @ self.weights).sum()  # a workload that no mix has
        return bool(missed < 1e-9) and len(self.rows) - int(np.linalg.matrix_rank(self.rows)) >= FEWEST_FREEDOM

    @cached_property
    def weights(self) -> Floats:
        """The weights of the mixes, with which they stand for the average; about equal after a balanced draw."""
        return np.asarray(np.linalg.pinv(self.rows).T @ self.average, dtype=float)


def of_these(launches: Launches) -> Estimate:
    """The mean of these mixes, with launches as units."""
    count = len(launches.counts)
    weights = np.full(count, 1 / count)
    mean = float(launches.means.mean())
    if not launches.enough or count < FEWEST_MIXES:
        return Estimate(mean, *NONE)
    variance, freedom = launches.variance(weights)
    return _interval(mean, variance, freedom)


def of_all(launches: Launches, population: Population) -> Estimate:
    """The mean of all mixes that could have been drawn, with mixes and launches as units."""
    weights, rows = population.weights, population.rows
    mean = float(weights @ launches.means)
    count, rank = len(rows), int(np.linalg.matrix_rank(rows))
    freedom = count - rank
    if not launches.enough or count < FEWEST_MIXES or freedom < 1:
        return Estimate(mean, *NONE)
    inverse = np.linalg.pinv(rows)
    residuals = launches.means - rows @ (inverse @ launches.means)
    spread = float(residuals @ residuals) / freedom
    noise = 0.0  # the part of it that launches explain
    for mixes, shares, _ in launches.cohorts:
        own = shares - shares @ rows[mixes] @ inverse[:, mixes]
        noise += float((own * shares).sum()) / freedom
    drawn = float((np.square(weights) * (1 - population.share)).sum())
    variance, of_launches = launches.variance(weights)
    total = variance + drawn * max(spread - noise, 0.0)
    parts = (drawn * spread) ** 2 / freedom + variance**2 / of_launches
    return _interval(mean, total, total**2 / parts if parts > 0 else of_launches)


def _interval(mean: float, variance: float, freedom: float) -> Estimate:
    half = float(quantile(np.array([freedom]))[0]) * float(np.sqrt(variance))
    return Estimate(mean, mean - half, mean + half, freedom)
