"""The kind of a quantity decides which average it may have; kinds are types, so that no other average is possible.

Costs (seconds, bytes, misses) add up: arithmetic mean. Rates (steps per second) are all units over all seconds, which
is the harmonic mean where each did the same work. Ratios (a slowdown, a share of alone) have the geometric mean alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


class WrongAverage(TypeError):
    """An average that means nothing for this kind of quantity."""


@dataclass(frozen=True)
class Costs:
    """Columns of a table that hold what was spent: they add up."""

    table: pd.DataFrame
    columns: Sequence[str]


@dataclass(frozen=True)
class Rates:
    """Units of work and the seconds that they took, as two columns of a table."""

    table: pd.DataFrame
    units: str
    seconds: str


@dataclass(frozen=True)
class Ratios:
    """Columns of a table that hold one quantity over another of its kind: they multiply."""

    table: pd.DataFrame
    columns: Sequence[str]


_MEANS = {
    Costs: "costs have an arithmetic mean: arithmetic_mean",
    Rates: "rates have all units over all seconds: mean_rate",
    Ratios: "ratios have a geometric mean: geometric_mean",
}


def arithmetic_mean(costs: Costs, by: Sequence[str]) -> pd.DataFrame:
    """The mean of each column in each group."""
    _insist(costs, Costs, "an arithmetic mean")
    return costs.table.groupby(list(by), observed=True)[list(costs.columns)].mean()


def mean_rate(rates: Rates, by: Sequence[str]) -> "pd.Series[float]":
    """All units of each group over all its seconds."""
    _insist(rates, Rates, "a mean rate")
    sums = rates.table.groupby(list(by), observed=True)[[rates.units, rates.seconds]].sum()
    return sums[rates.units] / sums[rates.seconds]


def geometric_mean(ratios: Ratios, by: Sequence[str]) -> pd.DataFrame:
    """The mean of each column in each group, on the log scale."""
    _insist(ratios, Ratios, "a geometric mean")
    columns = list(ratios.columns)
    logs = ratios.table.assign(**{name: np.log(ratios.table[name].to_numpy(dtype=float)) for name in columns})
    means = logs.groupby(list(by), observed=True)[columns].mean()
    return means.apply(np.exp)


def _insist(quantity: object, wanted: type, average: str) -> None:
    if not isinstance(quantity, wanted):
        instead = _MEANS.get(type(quantity), "first state which kind it is: Costs, Rates or Ratios")
        kind = type(quantity).__name__
        raise WrongAverage(f"{average} of {kind} means nothing; {instead}.")
