"""What estimates have in common: cells of windows, contrasts, launches, intervals, families of tests, and their table.

An estimate declares what it contrasts (`Contrast`) or averages (`launch_means`), and in which families its p-values are
adjusted; `docs/methodology.md` has why it is so.

Where several nodes of a class measured, an analysis of variance of the launches' means by node tests whether they
differ. The interval does not depend on that test: where it sees no difference there may still be one, and intervals
that rely on it cover too little (docs/methodology.md has the simulations). From three nodes on, nodes are the units, as
launches are on one node. Two nodes show next to nothing of their class: the interval then covers the mean of these two.

The same is done with the sessions of one node: other hours may differ, above all on machines that are shared.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import (
    FEWEST_LAUNCHES,
    FEWEST_UNITS,
    UNEVEN,
    Floats,
    columns_of,
    holm,
    lost,
    over_launches,
    per_launch,
    ratio,
    t_interval,
    two_sided,
)
from castmates.analysis.statistics.pairs import pair, planned, tally
from castmates.results.columns.contract import Columns
from castmates.study.spec import Plan

FEWEST_OF_A_LINE = 4  # launches: through three, a line leaves one degree of freedom
ROUNDING = 1e-24  # of a sum of squares of logarithms
APART_S = 30 * 60.0  # a launch that begins later than that after the one before it begins another session
LAUNCHES, NODES, SESSIONS = "launches", "nodes", "sessions"  # levels: what an interval is over

Made = TypeVar("Made")


def once(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Make it once of each object, for all who need it, and forget it with the object. Nobody may change it."""
    known: dict[int, Made] = {}

    @wraps(make)
    def made(of: Any) -> Made:  # noqa: ANN401 (whatever `make` takes)
        if id(of) not in known:
            known[id(of)] = make(of)
            weakref.finalize(of, known.pop, id(of), None)
        return known[id(of)]

    return made


def hosts_of(windows: pd.DataFrame) -> pd.Series:
    """The host of every launch that has windows, by cohort and launch."""
    return windows.drop_duplicates(LAUNCH).set_index(LAUNCH)["host"].astype("object")


def sessions_of(windows: pd.DataFrame) -> pd.Series:
    """The session of every launch that has windows: a run of launches, on any node, none of which begins late."""
    return sessions(times_of(windows))


def times_of(windows: pd.DataFrame) -> pd.Series:
    """When every launch that has windows began: seconds since 1970, NaN where that is not known."""
    return windows.drop_duplicates(LAUNCH).set_index(LAUNCH)["started"]


def seconds(times: pd.Series) -> pd.Series:
    """Times as records have them, in seconds since 1970; NaN where one is not known."""
    known = pd.to_datetime(times, utc=True, errors="coerce", format="ISO8601")
    return (known - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def sessions(times: pd.Series) -> pd.Series:
    """The number of the session of each of these times, from 0; those that are not known are of the first one."""
    ordered = times.sort_values(kind="stable")
    return (ordered.diff() > APART_S).cumsum().where(ordered.notna(), 0).reindex(times.index)


def between(values: pd.DataFrame, units: pd.Series, level: str, by: Sequence[str]) -> pd.DataFrame:
    """A row per group of `per_launch`: how many nodes or sessions it has, whether they differ, and what is over them.

    `units` has the node or the session of each launch.
    """
    launches = values.reset_index()
    launches["unit"] = units.reindex(pd.MultiIndex.from_frame(launches[LAUNCH])).to_numpy()
    launches["whole"] = launches.groupby(list(by), observed=True)["value"].transform("mean")
    parts = launches.groupby([*by, "unit"], observed=True).agg(
        mean=("value", "mean"), size=("value", "size"), var=("value", "var"), whole=("whole", "first")
    )
    parts["within"] = parts["var"].fillna(0.0) * (parts["size"] - 1)
    parts["between"] = parts["size"] * (parts["mean"] - parts["whole"]) ** 2
    parts["inverse"] = 1 / parts["size"]
    groups = parts.groupby(list(by), observed=True).agg(
        units=("size", "size"),
        launches=("size", "sum"),
        smallest=("size", "min"),
        largest=("size", "max"),
        mean=("mean", "mean"),
        spread=("mean", "std"),
        within=("within", "sum"),
        between=("between", "sum"),
        inverse=("inverse", "sum"),
    )
    found = _tested(groups, level)
    if level == SESSIONS:  # else a sweep that was stopped and went on would know less by its few launches more
        uneven = groups["smallest"] * UNEVEN < groups["largest"]
        found = found.assign(over=found["over"].mask(uneven, LAUNCHES))
        found[["another_low", "another_high"]] = found[["another_low", "another_high"]].mask(uneven)
    return found.add_prefix(f"{level}_").assign(**{level: groups["units"]})


def _tested(groups: pd.DataFrame, level: str) -> pd.DataFrame:
    names = ("units", "launches", "mean", "spread", "within", "between", "inverse")
    count, launches, mean, spread, within, between, inverse = (groups[name].to_numpy(dtype=float) for name in names)
    inside = launches - count  # degrees of freedom of launches inside nodes or sessions
    many, two = count >= FEWEST_UNITS, (count > 1) & (count < FEWEST_UNITS)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_these = np.sqrt(within / inside * inverse) / count
    freedom = np.where(many, count - 1, np.where(two & (inside > 0), inside, np.nan))
    error = np.where(many, spread / np.sqrt(count), of_these)
    of_another = t_interval(mean, spread * np.sqrt(1 + 1 / count), np.where(many, freedom, np.nan), groups.index)
    return t_interval(mean, error, freedom, groups.index).assign(
        p=_p_of_f(between, count - 1, within, inside),
        over=np.select([many, two], [level, these(level)], default=LAUNCHES),
        freedom=freedom,
        another_low=of_another["low"],
        another_high=of_another["high"],
    )


def these(level: str) -> str:
    """What an interval is over where only two nodes or sessions measured."""
    return f"{LAUNCHES} of these {level}"


def drift(values: pd.DataFrame, times: pd.Series, by: Sequence[str]) -> pd.Series:
    """The p-value of a straight line through the launches' values over time, of each group; NaN below four launches."""
    launches = values.reset_index()
    launches["x"] = times.reindex(pd.MultiIndex.from_frame(launches[LAUNCH])).to_numpy(dtype=float)
    launches["y"] = launches["value"]
    means = launches.groupby(list(by), observed=True)[["x", "y"]].transform("mean", skipna=False)
    x, y = launches["x"] - means["x"], launches["y"] - means["y"]
    sums = launches.assign(xx=x * x, xy=x * y, yy=y * y).groupby(list(by), observed=True)
    size, xx, xy, yy = (sums.size(), *(sums[name].sum(min_count=1) for name in ("xx", "xy", "yy")))
    freedom = np.where((size >= FEWEST_OF_A_LINE) & (xx > 0), size - 2.0, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(yy - xy**2 / xx, 0.0) / freedom / xx)
        slope = np.where(yy < ROUNDING, 0.0, xy / xx)
    return pd.Series(two_sided(slope, np.where(yy < ROUNDING, 1.0, error), freedom), index=size.index)


def _p_of_f(between: Floats, of_between: Floats, within: Floats, of_within: Floats) -> Floats:
    """The chance of a ratio of mean squares as large, where nodes do not differ; NaN where nothing can be compared."""
    from scipy import special  # an estimate: `castmates show` only reads the words here

    known = (of_between > 0) & (of_within > 0)
    upper, lower = (np.where(known, freedom, np.nan) for freedom in (of_between, of_within))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (between / upper) / (within / lower)
    ratio = np.where(between < ROUNDING, 0.0, ratio)
    return np.where(known, np.asarray(special.fdtrc(upper, lower, ratio), dtype=float), np.nan)


def over_levels(table: pd.DataFrame, levels: Mapping[str, pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """The estimates over the first of these levels of which there are several units; later ones are only counted."""
    launches = table["launches"].to_numpy(dtype=float)
    table = table.assign(over=LAUNCHES, freedom=np.where(launches < FEWEST_LAUNCHES, np.nan, launches - 1))
    for level, found in levels.items():
        table = _means_of_units(table, found, level, by)
    return table


def _means_of_units(table: pd.DataFrame, found: pd.DataFrame, level: str, by: Sequence[str]) -> pd.DataFrame:
    """The mean of the units' means, with its interval, where there are several that are alike in size."""
    known = found.reindex(pd.MultiIndex.from_frame(table[list(by)])).reset_index(drop=True)
    several = (known[level] > 1).to_numpy(dtype=bool) & (table["over"] == LAUNCHES).to_numpy(dtype=bool)
    units = several & (known[f"{level}_over"] != LAUNCHES).to_numpy(dtype=bool)
    replaced = {
        name: np.where(units, known[f"{level}_{name}"].to_numpy(), table[name].to_numpy())
        for name in ("mean", "low", "high", "p_value", "freedom", "over")
    }
    own = {
        name: np.where(several, known[name].to_numpy(dtype=float), np.nan)
        for name in (f"{level}_p", f"{level}_another_low", f"{level}_another_high")
    }
    return table.assign(**replaced, **own, **{level: known[level].fillna(0).to_numpy(dtype="int64")})


@dataclass(frozen=True)
class Contrast:
    """Windows of a plan's own launches, and which scene is compared with which baseline in them: a row each."""

    windows: pd.DataFrame
    contrasts: pd.DataFrame

    @classmethod
    def of(cls, plan: Plan, windows: pd.DataFrame, contrasts: pd.DataFrame) -> "Contrast":
        """Those of a plan; launches that it does not have stay out."""
        return cls(planned(windows, plan), contrasts)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The difference of each round in which scene and baseline were measured."""
        return pair(self.windows, self.contrasts)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """What each launch came to, by row and platform."""
        return per_launch(self.pairs, ROW)

    @cached_property
    def hosts(self) -> pd.Series:
        """The node of each launch."""
        return hosts_of(self.windows)

    def by_launch(self, about: Sequence[str]) -> pd.DataFrame:
        """The mean difference of each launch by what the contrasts have in these columns, platform and cohort."""
        rows = self.contrasts.drop_duplicates("row")[list(dict.fromkeys(["row", *about]))]
        return of_each_launch(self.pairs.merge(rows, on="row"), [*about, "platform"], ["difference"])

    def estimates(self) -> pd.DataFrame:
        """The estimate of each row that has launches, by row and platform."""
        return over_launches(self.launches, ROW)

    def rows(self) -> pd.DataFrame:
        """A row per contrast and platform in their order: counts of windows, estimate and interval."""
        counted = _with_silent_ones(tally(self.windows, self.contrasts), self.contrasts, self.windows)
        table = counted.join(self.estimates()).fillna(dict.fromkeys([*counted, "launches", "rounds"], 0))
        return table.reset_index().merge(self.contrasts.drop_duplicates("row"), on="row")

    @property
    def levels(self) -> dict[str, pd.DataFrame]:
        """What is over nodes, and what over sessions."""
        units = {NODES: self.hosts, SESSIONS: sessions_of(self.windows)}
        return {level: between(self.launches, own, level, ROW) for level, own in units.items()}

    def rows_over_levels(self) -> pd.DataFrame:
        """The same; where several nodes measured, the interval is over them, and else over several sessions."""
        table = over_levels(self.rows(), self.levels, ROW)
        drifts = drift(self.launches, times_of(self.windows), ROW).reindex(pd.MultiIndex.from_frame(table[ROW]))
        return table.assign(drift_p=np.where(table["nodes"] > 1, np.nan, drifts))


def _with_silent_ones(table: pd.DataFrame, contrasts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """A line also for what has no window."""
    silent = sorted(set(contrasts["row"]) - set(table.index.get_level_values("row")))
    lines = [*table.index, *((row, only_platform(windows)) for row in silent)]
    return table.reindex(pd.MultiIndex.from_tuples(lines, names=ROW)).sort_index()


def only_platform(windows: pd.DataFrame) -> str:
    """The platform of a row without windows: that of all others if they have but one, else none ('')."""
    platforms = windows["platform"].unique().tolist()
    return str(platforms[0]) if len(platforms) == 1 else ""


def launch_means(rows: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The mean over launches of the mean in each launch, of these columns; and how many `launches` there are."""
    launches = of_each_launch(rows, by, columns).groupby([*by], observed=True)[[*columns]]
    return launches.mean().assign(launches=launches.size())


def of_each_launch(rows: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The mean of these columns in each launch: a row per group and launch."""
    return rows.groupby([*by, *LAUNCH], observed=True)[[*columns]].mean().reset_index()


def adjusted(table: pd.DataFrame, *family: str | pd.Series, p: str = "p_value") -> pd.Series:
    """P-values adjusted for the tests of their family: the rows that share these columns."""
    return table.groupby(list(family))[p].transform(holm)


def losses_of(estimates: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a logarithm that is a slowdown: as a ratio, and as a loss of the rate."""
    return columns_of(estimates, "slowdown", ratio) | columns_of(estimates, "loss_pct", lost, ends="loss")


def within_launch(estimates: pd.DataFrame) -> dict[str, pd.Series]:
    """The interval within launches, of ratios."""
    return {name: ratio(estimates[name]) for name in ("within_low", "within_high")}


def in_order(table: pd.DataFrame, by: Sequence[str], **ranks: Mapping[str, int]) -> pd.DataFrame:
    """The table sorted by these columns; those with ranks by the rank of each word."""

    def ranked(column: pd.Series) -> pd.Series:
        return column.map(ranks[str(column.name)]) if column.name in ranks else column

    return table.sort_values(list(by), kind="stable", key=ranked)


def declared(table: pd.DataFrame, columns: Columns, plan: Plan | None = None) -> pd.DataFrame:
    """A table's own columns, with their types; those of a plan name its study and class of nodes."""
    named = table if plan is None else table.assign(study=plan.study, machine=plan.machine)
    return named[list(columns)].astype(dict(columns)).reset_index(drop=True)


def of_texts(names: str) -> dict[str, str]:
    """Columns of texts."""
    return dict.fromkeys(names.split(), "str")


def of_numbers(names: str) -> dict[str, str]:
    """Columns of numbers; those that end in _low and _high are 95 % intervals, NaN below three launches."""
    return dict.fromkeys(names.split(), "float64")


def of_counts(names: str) -> dict[str, str]:
    """Columns of whole numbers."""
    return dict.fromkeys(names.split(), "int64")
