"""Paired differences -> mean, interval between launches, interval within launch, p-value; and ratios of two means.

They are on the scale of the differences, mostly logarithms; `docs/methodology.md` has the formulas. Neighbouring rounds
of a launch are alike where rates wander slowly, and then show less. The model is a correlation that falls geometrically
with the distance of two rounds; `docs/methodology.md` has what it is worth in simulation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.power import CONFIDENCE as CONFIDENCE
from castmates.analysis.statistics.power import FEWEST_LAUNCHES as FEWEST_LAUNCHES

FEWEST_UNITS = 3  # nodes, or sessions: with two, one degree of freedom is left, as with two launches
UNEVEN = 2  # sessions of which one has so many times the launches of another are no units
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


def estimate(pairs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Reduce `difference` (a row per round of a launch) to one row per group: the launches' mean and its intervals.

    Rows are in the order of time, or have a column `round`.
    """
    return over_launches(per_launch(pairs, by), by)


def per_launch(pairs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The first half of `estimate`: a row per group and launch, so that launches can be taken some at a time."""
    if "round" in pairs:
        pairs = pairs.sort_values("round", kind="stable")
    launches = pairs.groupby([*by, *LAUNCH], observed=True)
    table = launches.agg(value=("difference", "mean"), rounds=("difference", "size"), variance=("difference", "var"))
    columns = {"successive": pairs["difference"].to_numpy(dtype=float)}
    table["successive"] = successive(columns, launches.ngroup().to_numpy(dtype=np.int64))["successive"].to_numpy()
    return table


def over_launches(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The other half: one row per group, of all launches together, in whatever order they come."""
    values = values.sort_index()
    values["freedom"] = values["rounds"] - 1
    values["squares"] = values["variance"].fillna(0.0) * values["freedom"]
    values["share"] = 1.0 / values["rounds"]
    groups = values.groupby(list(by), observed=True).agg(
        launches=("value", "size"),
        rounds=("rounds", "sum"),
        mean=("value", "mean"),
        spread=("value", "std"),
        freedom=("freedom", "sum"),
        squares=("squares", "sum"),
        shares=("share", "sum"),
    )
    groups["widening"] = widening(values, by)
    return _intervals(groups)


def columns_of(
    estimates: pd.DataFrame, name: str, scale: Callable[[pd.Series], pd.Series] = pd.Series.copy, ends: str = ""
) -> dict[str, pd.Series]:
    """Mean and interval as the columns of a quantity: `name`, and `ends` (else the name) with _low and _high."""
    names = {"mean": name, "low": f"{ends or name}_low", "high": f"{ends or name}_high"}
    return {column: scale(estimates[own]) for own, column in names.items()}


def ratio(logs: pd.Series) -> pd.Series:
    """Back from the log scale."""
    return pd.Series(np.exp(logs.to_numpy(dtype=float)), index=logs.index)


def lost(logs: pd.Series) -> pd.Series:
    """The logarithm of a slowdown as a loss, in per cent of the rate."""
    return pd.Series(-100 * np.expm1(-logs.to_numpy(dtype=float)), index=logs.index)


def gained(logs: pd.Series) -> pd.Series:
    """The logarithm of a ratio as what is above 1, in per cent."""
    return pd.Series(100 * np.expm1(logs.to_numpy(dtype=float)), index=logs.index)


def more_than_none(estimates: pd.DataFrame) -> pd.Series:
    """The one-sided p-value of "it is not above zero", from `mean` and the two-sided one of "no difference"."""
    half = estimates["p_value"] / 2
    return pd.Series(np.where(estimates["mean"] > 0, half, 1 - half), index=estimates.index)


def more_than(estimates: pd.DataFrame, edge: float) -> pd.Series:
    """The one-sided p-value of "it is not above the edge", from `mean`, `high` and `launches`."""
    freedom = estimates["launches"].to_numpy(dtype=float) - 1
    freedom = np.where(freedom > 0, freedom, np.nan)
    above = estimates["mean"].to_numpy(dtype=float) - edge
    error = (estimates["high"] - estimates["mean"]).to_numpy(dtype=float) / quantile(freedom)
    half = two_sided(above, error, freedom) / 2
    return pd.Series(np.where(above > 0, half, 1 - half), index=estimates.index)


def holm(p_values: Sequence[float] | pd.Series) -> Floats:
    """Holm's adjustment for testing several hypotheses at once; NaN stays NaN and does not count as a test."""
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _intervals(groups: pd.DataFrame) -> pd.DataFrame:
    mean = groups["mean"].to_numpy(dtype=float)
    launches = groups["launches"].to_numpy(dtype=float)
    enough = launches >= FEWEST_LAUNCHES
    between = np.where(enough, groups["spread"].to_numpy(dtype=float) / np.sqrt(launches), np.nan)
    freedom = groups["freedom"].to_numpy(dtype=float)
    freedom = np.where(freedom > 0, freedom, np.nan)
    variance = (groups["squares"] * groups["widening"]).to_numpy(dtype=float) / freedom
    within = np.sqrt(variance * groups["shares"].to_numpy(dtype=float)) / launches
    half_within = quantile(freedom) * within
    return t_interval(mean, between, np.where(enough, launches - 1, np.nan), groups.index).assign(
        within_low=mean - half_within,
        within_high=mean + half_within,
        launches=groups["launches"],
        rounds=groups["rounds"],
    )


def t_interval(mean: Floats, error: Floats, freedom: Floats, index: pd.Index) -> pd.DataFrame:
    """Student's interval of means, and the p-value of "it is zero", from their errors and degrees of freedom."""
    half = quantile(freedom) * error
    columns = {"mean": mean, "low": mean - half, "high": mean + half, "p_value": two_sided(mean, error, freedom)}
    return pd.DataFrame(columns, index=index)


def quantile(freedom: Floats, chance: float | Floats = (1 + CONFIDENCE) / 2) -> Floats:
    """What Student's t stays below with this chance; as it stands, the factor of an interval's half-width."""
    from scipy import special  # scipy.stats has the same, and takes a second; reading results takes neither

    return np.asarray(special.stdtrit(freedom, chance), dtype=float)


def two_sided(mean: Floats, error: Floats, freedom: Floats) -> Floats:
    """The p-value of "no effect"; launches that agree to the last bit leave no doubt either way."""
    from scipy import special

    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(mean / error)
    size = np.where((mean == 0) & (error == 0), 0.0, size)
    return np.asarray(2 * special.stdtr(freedom, -size), dtype=float)


def ratio_of_means(launches: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """By group: `ratio` of the means of `above` and `below`, with `low` and `high`; a row of `launches` is a launch.

    Both vary together, and the one below the line is known only so well. Fieller's interval is the set of all ratios r
    for which mean(above - r * below) does not differ from zero by the t test; where the mean below the line may be
    zero, that set has no ends, and there is no interval.
    """
    rows = launches.assign(square=launches["above"] ** 2, other=launches["below"] ** 2)
    rows["product"] = rows["above"] * rows["below"]
    means = rows.groupby(list(by), observed=True)[["above", "below", "square", "other", "product"]].mean()
    count = rows.groupby(list(by), observed=True).size().to_numpy(dtype=float)
    above, below = means["above"].to_numpy(dtype=float), means["below"].to_numpy(dtype=float)
    enough = np.where(count >= FEWEST_LAUNCHES, count - 1, np.nan)
    far = quantile(enough) ** 2 / enough  # the square of t, times what makes a mean's variance of a spread's
    a = below**2 - far * (means["other"] - below**2).clip(lower=0)
    b = above * below - far * (means["product"] - above * below)
    c = above**2 - far * (means["square"] - above**2).clip(lower=0)
    bounded = a > 0
    half = np.sqrt((b**2 - a * c).clip(lower=0)) / a
    middle = b / a
    ratio = pd.Series(above, means.index) / pd.Series(below, means.index).where(below != 0)
    return pd.DataFrame({"ratio": ratio, "low": (middle - half).where(bounded), "high": (middle + half).where(bounded)})
