"""Independent groups of launches -> differences and sums of their means, with Welch's interval and p-value."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, FEWEST_UNITS, UNEVEN, Floats, t_interval


def welch(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """`second` minus `first`, row by row, from `mean`, `variance` and number (`launches`) of the units of both.

    The variances need not be the same, nor the numbers of launches; below three launches on either side there is
    neither an interval nor a p-value.
    """
    difference = _floats(second, "mean") - _floats(first, "mean")
    launches = [_floats(side, "launches") for side in (first, second)]
    enough = (launches[0] >= FEWEST_LAUNCHES) & (launches[1] >= FEWEST_LAUNCHES)
    squares = [_floats(side, "variance") / count for side, count in zip((first, second), launches, strict=True)]
    error = np.where(enough, np.sqrt(squares[0] + squares[1]), np.nan)
    return t_interval(difference, error, _freedom(squares, launches), first.index)


def summed(parts: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The sum of independent means in each group, with Welch and Satterthwaite's degrees of freedom.

    A row of `parts` is the `mean` over so many `units` and their `variance`. Where one of a group's parts has fewer
    than three units, the group has neither an interval nor a p-value.
    """
    square, freedom = parts["variance"] / parts["units"], parts["units"] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = parts.assign(square=square, freedom=freedom, spread=square**2 / freedom)
    groups = terms.assign(few=parts["units"] < FEWEST_LAUNCHES).groupby(list(by), observed=True)
    sums = groups[["mean", "square", "spread", "freedom", "launches"]].sum(skipna=False)  # no part may be missing
    total = _floats(sums, "square")
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = total**2 / _floats(sums, "spread")
    # Launches that agree to the last bit have no degrees by the formula: they get all of them.
    degrees = np.where(total > 0, degrees, _floats(sums, "freedom"))
    error = np.where(groups["few"].any().to_numpy(), np.nan, np.sqrt(total))
    return t_interval(_floats(sums, "mean"), error, degrees, sums.index).assign(launches=sums["launches"])


def cohort_means(losses: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Each cohort's part of the mean over pairs, from a `loss` per group, mix, cohort and launch with its `session`.

    `summed` adds up the parts of a group. A pair that several cohorts measured is shared out among them, so that no
    pair weighs more than another. A group in which a cohort lost all its launches has a part without a value. Where
    sessions are the units, a group has one part: its cohorts were measured in the same hours.
    """
    by = list(by)
    homes = losses.groupby([*by, "mix"])["cohort"].transform("nunique")
    pairs = losses.groupby(by)["mix"].transform("nunique")
    places = losses.drop_duplicates([*by, "mix", "cohort"]).groupby([*by, "cohort"]).size().rename("places")
    launches = losses.assign(part=losses["loss"] / (homes * pairs)).groupby([*by, *LAUNCH])
    values = launches.agg(part=("part", "sum"), present=("part", "size"), session=("session", "first")).join(places)
    values["part"] = values["part"].where(values["present"] == values["places"])
    means = values.groupby([*by, "cohort"])["part"].agg(["mean", "var", "count"])
    means = means.set_axis(["mean", "variance", "units"], axis=1).assign(launches=means["count"]).reset_index()
    sessions = _session_means(values, by)
    own = pd.MultiIndex.from_frame(means[by]).isin(pd.MultiIndex.from_frame(sessions[by]))
    return pd.concat([means[~own], sessions]).set_index([*by, "cohort"])


def _session_means(values: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The part of each group over sessions, of those that have several with about as many launches of each cohort."""
    cohorts = values.reset_index().groupby(by)["cohort"].nunique().rename("cohorts")
    cells = values.dropna(subset="part").groupby([*by, "cohort", "session"])["part"].agg(["mean", "size"]).reset_index()
    there = cells.groupby([*by, "session"])["cohort"].transform("size")
    cells = cells[there == cells.join(cohorts, on=by)["cohorts"]]  # a session that lacks a cohort has no mean
    sizes = cells.groupby([*by, "cohort"])["size"]
    even = (sizes.min() * UNEVEN >= sizes.max()).groupby(by).all()
    each = cells.groupby([*by, "session"]).agg(mean=("mean", "sum"), launches=("size", "sum")).groupby(by)
    groups = each["mean"].agg(["mean", "var", "count"]).set_axis(["mean", "variance", "units"], axis=1)
    several = (groups["units"] >= FEWEST_UNITS) & even
    return groups.join(each["launches"].sum())[several].assign(cohort="").reset_index()


def one_sample(side: pd.DataFrame) -> pd.DataFrame:
    """The t interval of one group by itself, from the same columns."""
    mean, launches = _floats(side, "mean"), _floats(side, "launches")
    enough = launches >= FEWEST_LAUNCHES
    error = np.where(enough, np.sqrt(_floats(side, "variance") / np.where(enough, launches, np.nan)), np.nan)
    return t_interval(mean, error, np.where(enough, launches - 1, np.nan), side.index)


def _freedom(squares: list[Floats], launches: list[Floats]) -> Floats:
    """Welch and Satterthwaite's; all degrees where no launch differs from another, where the formula has no value."""
    total = squares[0] + squares[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [square / total for square in squares]
        freedom = 1 / sum(share**2 / (count - 1) for share, count in zip(shares, launches, strict=True))
    return np.asarray(np.where(total == 0, launches[0] + launches[1] - 2, freedom), dtype=float)


def _floats(table: pd.DataFrame, column: str) -> Floats:
    return table[column].to_numpy(dtype=float)
