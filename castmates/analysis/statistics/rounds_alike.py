"""Neighbouring rounds of a launch are alike where rates wander slowly: how far, and how much less they then show.

The model is a correlation that falls geometrically with the distance of two rounds; `docs/methodology.md` has what it
is worth in simulation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FEWEST_ROUNDS = 3  # of a launch: two differ by the same, however alike rounds are
MOST = 0.5  # correlation of neighbours: in a few rounds, a larger one looks like a difference between launches

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]
CORRELATIONS = np.arange(0.0, MOST + 0.005, 0.01)


def successive(columns: Mapping[str, Floats], launch: Integers) -> pd.DataFrame:
    """Half the mean square of what each value differs by from the next one of its launch, by the launches' numbers.

    That is the variance where rounds are independent, and less where neighbours are alike; NaN where there is but one.
    """
    order = np.argsort(launch, kind="stable")
    number = launch[order]
    first = np.ones(len(number), dtype=bool)
    first[1:] = number[1:] != number[:-1]
    begins = np.flatnonzero(first)
    steps = np.diff(np.append(begins, len(number))) - 1.0
    table = {name: _halves(values[order], first, begins) for name, values in columns.items()}
    return pd.DataFrame(table, index=number[begins]).div(np.where(steps > 0, steps, np.nan), axis=0)


def _halves(values: Floats, first: Flags, begins: Integers) -> Floats:
    """The sum of the halved squares of each launch; its first value has none before it."""
    squares = np.zeros(len(values))
    squares[1:] = np.diff(values) ** 2 / 2
    squares[first] = 0.0
    return np.add.reduceat(squares, begins) if len(begins) else squares


def widening(launches: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """By how much the variance of a launch's mean is larger than that of independent rounds; of each group.

    `launches` has `rounds`, `variance` and `successive` of each launch.
    """
    telling = launches["rounds"] >= FEWEST_ROUNDS
    freedom = launches["rounds"] - 1
    table = launches.assign(
        squares=(launches["variance"] * freedom).where(telling, 0.0),
        steps=(launches["successive"] * freedom).where(telling, 0.0),
        rounds_told=launches["rounds"].where(telling),
    )
    groups = table.groupby(list(by), observed=True).agg(
        squares=("squares", "sum"), steps=("steps", "sum"), told=("rounds_told", "mean"), rounds=("rounds", "mean")
    )
    squares, steps, told = (groups[name].to_numpy(dtype=float) for name in ("squares", "steps", "told"))
    correlation = _correlation(steps, squares, np.nan_to_num(told, nan=FEWEST_ROUNDS))
    mean, inside = _variances(correlation, np.maximum(groups["rounds"].to_numpy(dtype=float), 1.0))
    return pd.Series(mean / inside, index=groups.index)


def _correlation(steps: Floats, squares: Floats, rounds: Floats) -> Floats:
    """The correlation of neighbours at which squares of steps and of deviations have the ratio that was seen."""
    _, inside = _variances(CORRELATIONS[None, :], rounds[:, None])
    expected = (1 - CORRELATIONS) / inside  # falls with the correlation
    place = (expected * squares[:, None] > steps[:, None]).sum(axis=1) - 1
    return np.asarray(CORRELATIONS[np.maximum(place, 0)])


def _variances(correlation: Floats, rounds: Floats) -> tuple[Floats, Floats]:
    """That of a launch's mean over that of independent rounds, and that inside a launch over a round's own."""
    rest = 1 - correlation
    pairs = 2 * (correlation / rest - correlation * (1 - correlation**rounds) / (rounds * rest**2))
    return 1 + pairs, 1 - pairs / np.maximum(rounds - 1, 1)
