"""Values by window and metric as a matrix, and pairs of windows as row numbers: made once, used for every metric.

A number per row of a table and launch takes the place of their names, so that differences are reduced by it alone.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH, MEMBER, ROUND, ROW
from castmates.analysis.statistics.intervals import Floats, over_launches
from castmates.analysis.statistics.name_codes import Integers, combinations
from castmates.analysis.statistics.rounds_alike import successive
from castmates.analysis.statistics.window_places import WindowPlaces
from castmates.study.spec import UNMANAGED

Sides = Callable[[Floats, Floats], Mapping[str, Floats]]  # values of scene and baseline -> what is estimated of them
_MEMBER_ROUND = ["platform", *ROUND, "member"]


@dataclass(frozen=True)
class Values:
    """A value per window and metric; NaN where there is none."""

    rows: Integers  # of the windows, ascending
    values: Floats

    @classmethod
    def of(cls, at: Integers, metric: Integers, values: Floats, metrics: int) -> "Values":
        """The mean of what stands in the same window (`at`, a row) and metric (its number of so many)."""
        there = np.zeros(int(at.max(initial=-1)) + 1, dtype=bool)
        there[at] = True
        rows = np.flatnonzero(there)
        place = (np.cumsum(there) - 1)[at] * metrics + metric
        count = np.bincount(place, minlength=len(rows) * metrics)
        total = np.bincount(place, weights=values, minlength=len(rows) * metrics)
        with np.errstate(invalid="ignore"):
            return cls(rows, (total / count).reshape(len(rows), metrics))


@dataclass(frozen=True)
class Groups:
    """The rows of a table that windows belong to, and the launches that they come from."""

    number: Integers  # of each window: its row and its launch in one
    rows: pd.DataFrame
    launches: int

    @classmethod
    def of(cls, windows: pd.DataFrame, columns: Sequence[str]) -> "Groups":
        """The combinations of these columns are the rows."""
        row, rows = combinations(windows, columns)
        launch, launches = combinations(windows, LAUNCH)
        return cls(row * len(launches) + launch, rows, len(launches))

    @property
    def size(self) -> int:
        """How many groups there may be."""
        return len(self.rows) * self.launches


@dataclass(frozen=True)
class Pairs:
    """Windows and what each is compared with."""

    scene: Integers  # rows of the table of windows
    base: Integers
    group: Integers

    @classmethod
    def of(cls, windows: pd.DataFrame, scenes: Integers, bases: Integers, group: Integers) -> "Pairs":
        """Each of the windows `scenes` (rows) with the one of `bases` in its round, where there is one."""
        rounds = windows[_MEMBER_ROUND]
        place = WindowPlaces.of(rounds.iloc[bases], _MEMBER_ROUND).find(rounds.iloc[scenes])
        there = place >= 0
        return cls(scenes[there], bases[place[there]], group[scenes[there]])

    def inside(self, values: Values) -> tuple[Floats, Floats, Integers]:
        """The values of both windows and the group, of the pairs whose windows both have values."""
        place = np.full(1 + max(int(rows.max(initial=-1)) for rows in (self.scene, self.base, values.rows)), -1)
        place[values.rows] = np.arange(len(values.rows))
        scene, base = place[self.scene], place[self.base]
        there = (scene >= 0) & (base >= 0)
        return values.values[scene[there]], values.values[base[there]], self.group[there]


def against_alone(windows: pd.DataFrame) -> tuple[Integers, Integers]:
    """The rows of the valid windows of co-runs, and of alone without a partition."""
    kind, valid = windows["kind"], windows["valid"].to_numpy(dtype=bool)
    corun, alone = kind == "corun", (kind == "alone") & (windows["partition"] == UNMANAGED)
    return np.flatnonzero(corun.to_numpy(dtype=bool) & valid), np.flatnonzero(alone.to_numpy(dtype=bool) & valid)


def held_against(windows: pd.DataFrame, contrasts: pd.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Rows of windows, the rows of what they are compared with in their round, and whose `row` of contrasts that is."""
    wanted = WindowPlaces.of(contrasts, MEMBER)
    asked = pd.DataFrame({"scene_row": wanted.find(windows)}).reset_index(names="window")
    baselines = contrasts[["row", "baseline_scene"]].assign(scene_row=wanted.find(contrasts))
    both = asked[asked["scene_row"] >= 0].merge(baselines, on="scene_row")  # a scene may stand in several contrasts
    scene = both["window"].to_numpy(dtype=np.int64)
    base = windows[_MEMBER_ROUND].iloc[scene].assign(scene=both["baseline_scene"].to_numpy())
    bases = WindowPlaces.of(windows, [*_MEMBER_ROUND, "scene"]).find(base)
    there = bases >= 0
    return scene[there], bases[there], both["row"].to_numpy(dtype=np.int64)[there]


class Differences:
    """What windows differ by from their baselines, by row and metric, from some whole launches at a time.

    Only what is known of each launch is kept: the values of all windows would not fit into memory.
    """

    def __init__(self, groups: Groups, pairs: Pairs, metrics: Sequence[Hashable] = ()) -> None:
        """Know the rows, what is compared with what, and the metrics that come first."""
        self.groups = groups
        self.metrics: dict[Hashable, int] = {metric: number for number, metric in enumerate(metrics)}
        self._pairs = pairs
        self._launches: list[pd.DataFrame] = []

    @classmethod
    def of_contrasts(
        cls, windows: pd.DataFrame, contrasts: pd.DataFrame, metrics: Sequence[Hashable] = ()
    ) -> "Differences":
        """Those that the contrasts name, in their rows."""
        scene, base, row = held_against(windows, contrasts)
        groups = Groups.of(windows[[*LAUNCH, "platform"]].iloc[scene].assign(row=row), ROW)
        return cls(groups, Pairs(scene, base, groups.number), metrics)

    @classmethod
    def of_coruns(cls, windows: pd.DataFrame, columns: Sequence[str]) -> "Differences":
        """Those of co-runs and alone without a partition; the combinations of these columns are the rows."""
        groups = Groups.of(windows, columns)
        return cls(groups, Pairs.of(windows, *against_alone(windows), groups.number))

    def number(self, metric: Hashable) -> int:
        """What a metric is called in what is added."""
        return self.metrics.setdefault(metric, len(self.metrics))

    def numbers(self, metrics: Iterable[Hashable]) -> Integers:
        """The same of several."""
        return np.array([self.number(metric) for metric in metrics], dtype=np.int64)

    def add(self, values: Values, metrics: Integers, sides: Sides) -> None:
        """Take in some launches: `values` has a column for each of these metrics, by their numbers."""
        scene, base, group = self._pairs.inside(values)
        self._launches.append(_per_launch(sides(scene, base), group, metrics, self.groups.size))

    @property
    def launches(self) -> pd.DataFrame:
        """What each launch came to: each of the sides, by row and metric in one number; empty without any."""
        return by_row(self._launches, self.groups.launches) if sum(map(len, self._launches)) else pd.DataFrame()

    def table(self, names: Sequence[str]) -> pd.DataFrame:
        """The estimate of `difference` and the means of the other sides; these are the names of a metric's parts."""
        whole = self.launches
        if whole.empty:
            return whole
        others = [name for name in whole if name != "difference" and _variance(str(name)) in whole]
        return self.named(estimated(whole, "difference").join(whole[others].groupby("row").mean()), names)

    def named(self, table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """The table with what its rows and metrics (and their numbers) are."""
        number, row = np.divmod(table.index.to_numpy(), len(self.groups.rows))
        metrics = pd.DataFrame(list(self.metrics), columns=list(names)).iloc[number].assign(number=number)
        parts = (self.groups.rows.iloc[row], metrics, table)
        return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)


def both_sides(scene: Floats, baseline: Floats) -> Mapping[str, Floats]:
    """What most estimates are of: the difference, with what it is a difference of."""
    return {"difference": scene - baseline, "scene": scene, "baseline": baseline}


def _per_launch(columns: Mapping[str, Floats], group: Integers, metrics: Integers, groups: int) -> pd.DataFrame:
    """A row per metric and group, by one number for both: mean and variance of each column over its `rounds`.

    The columns are matrices, a row per pair and a column per metric; `metrics` has the metrics' numbers, and groups
    (so many) are those of the pairs. What is NaN in the first of them is in none.
    """
    there = ~np.isnan(next(iter(columns.values())))
    pair, metric = np.nonzero(there)
    return reduced(metrics[metric] * groups + group[pair], {name: matrix[there] for name, matrix in columns.items()})


def reduced(number: Integers, columns: Mapping[str, Floats]) -> pd.DataFrame:
    """A row per number: mean and variance of each column over its `rounds`, which stand in the order of time."""
    within = pd.DataFrame(dict(columns)).groupby(number)
    means, spread = within.mean(), within.var().rename(columns=_variance)
    steps = successive(columns, number).rename(columns=_successive)
    return pd.concat([means, spread, steps, within.size().rename("rounds")], axis=1)


def by_row(parts: Sequence[pd.DataFrame], launches: int) -> pd.DataFrame:
    """All parts of the launches (so many) together, in one order whatever the parts are; the index is the `row`."""
    whole = pd.concat([part for part in parts if len(part)] or list(parts)).sort_index()
    whole.index = pd.Index(whole.index.to_numpy() // max(launches, 1), name="row")
    return whole


def estimated(whole: pd.DataFrame, column: str) -> pd.DataFrame:
    """`intervals.over_launches` of one of these columns, for each row."""
    names = {column: "value", _variance(column): "variance", _successive(column): "successive", "rounds": "rounds"}
    return over_launches(whole[list(names)].rename(columns=names), ["row"])


def _variance(column: str) -> str:
    return f"{column}_variance"


def _successive(column: str) -> str:
    return f"{column}_successive"
