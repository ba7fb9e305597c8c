"""Values by window and metric as a matrix, and pairs of windows as row numbers: made once, used for every metric.

A number per row of a table and launch takes the place of their names, so that differences are reduced by it alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH, MEMBER, ROUND
from castmates.analysis.statistics.intervals import Floats, over_launches
from castmates.analysis.statistics.name_codes import Integers, combinations
from castmates.analysis.statistics.rounds_alike import successive
from castmates.analysis.statistics.window_places import WindowPlaces
from castmates.study.spec import UNMANAGED

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


def per_launch(columns: Mapping[str, Floats], group: Integers, metrics: Integers, groups: int) -> pd.DataFrame:
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
