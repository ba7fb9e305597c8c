"""Values by window and metric as a matrix, and pairs of windows as row numbers: made once, used for every metric.

A number per row of a table and launch takes the place of their names, so that differences are reduced by it alone; one
whole number stands for a window. Launches come some at a time.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.keys import LAUNCH, MEMBER, ROUND, ROW, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, over_launches, ratio, successive
from castmates.study.spec import UNMANAGED

# Whole numbers in the place of names, so that no names are compared in millions of rows.
#
# Names may be strings or categories, and categories may differ between the parts of a table.

Integers = npt.NDArray[np.int64]
LARGEST = 2**62


def coded(table: pd.DataFrame) -> pd.DataFrame:
    """The table with names as categories: each name is then looked at once, however often it is needed."""
    return table.astype({name: "category" for name in table if table[name].dtype.kind == "O"})


def codes_of(values: pd.Series) -> tuple[Integers, pd.Index]:
    """The number of each value, -1 for none, and the values by their numbers."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values.cat.codes, dtype=np.int64), values.cat.categories
    codes, names = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), pd.Index(names)


def codes_in(values: pd.Series, known: Sequence[str] | pd.Index) -> Integers:
    """The place of each value among those that are known, -1 where it is none of them."""
    codes, names = codes_of(values)
    places = pd.Index(known, dtype=object).get_indexer(pd.Index(np.asarray(names, dtype=object)))
    return np.append(places, -1)[codes].astype(np.int64)


def combinations(table: pd.DataFrame, columns: Sequence[str]) -> tuple[Integers, pd.DataFrame]:
    """The number of each row's combination of values, and the combinations, sorted, by their numbers."""
    number, most = np.zeros(len(table), dtype=np.int64), 1
    for name in columns:
        codes, names = codes_of(table[name])
        if most * (len(names) + 1) > LARGEST:
            number, used = pd.factorize(number)
            most = len(used)
        number, most = number * (len(names) + 1) + codes + 1, most * (len(names) + 1)
    number, used = pd.factorize(number)
    first = np.zeros(len(used), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # of equal ones the last one written stays
    distinct = table[list(columns)].iloc[first].reset_index(drop=True)
    categories = [name for name in columns if isinstance(distinct[name].dtype, pd.CategoricalDtype)]
    distinct = distinct.astype(dict.fromkeys(categories, "str")).sort_values(list(columns))  # by name, not by category
    rank = np.zeros(len(used), dtype=np.int64)
    rank[distinct.index.to_numpy()] = np.arange(len(used))
    return rank[number], distinct.reset_index(drop=True)


def changes_in(table: pd.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether any of the columns has another value than in the row above."""
    changed = np.zeros(len(table), dtype=bool)
    changed[:1] = True
    for name in columns:
        values = _plain(table[name])
        changed[1:] |= values[1:] != values[:-1]
    return changed


def _plain(values: pd.Series) -> npt.NDArray[Any]:
    """Numbers that are equal where the values are."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.codes.to_numpy()
    return values.to_numpy() if values.dtype.kind == "i" else pd.factorize(values)[0]


IN_NONE, BEHIND = -1, -2  # the number of what is in no window; what no row has
Sides = Callable[[Floats, Floats], Mapping[str, Floats]]  # values of scene and baseline -> what is estimated of them
_MEMBER_ROUND = ["platform", *ROUND, "member"]
SIDES = ("change", "value", "baseline")
Measured = tuple[Integers, Integers, Floats]  # rows of windows, numbers of metrics, values


@dataclass(frozen=True)
class WindowPlaces:
    """The rows of a table of windows, by the columns that identify a window."""

    columns: Sequence[str]
    known: list[pd.Index | int]  # of each column: its names, or its largest number
    keys: Integers  # sorted
    rows: Integers  # of each key

    @classmethod
    def of(cls, windows: pd.DataFrame, columns: Sequence[str] = WINDOW) -> "WindowPlaces":
        """Number these windows; of two with the same values, the first is taken."""
        known = [_known(windows[name]) for name in columns]
        keys = _keys(windows, columns, known)
        order = np.argsort(keys, kind="stable")
        order = order[keys[order] != IN_NONE]  # a window without a name has no number
        return cls(columns, known, keys[order], order)

    def find(self, table: pd.DataFrame) -> Integers:
        """Of each row, the number of its window's row; -1 where its window is none of these."""
        first = np.flatnonzero(changes_in(table, self.columns))  # the rows of a window mostly follow each other
        keys = _keys(table[list(self.columns)].iloc[first], self.columns, self.known)
        at = np.searchsorted(self.keys, keys)
        places = np.where(np.append(self.keys, BEHIND)[at] == keys, np.append(self.rows, IN_NONE)[at], IN_NONE)
        return np.repeat(places, np.diff(np.append(first, len(table))))


def _known(values: pd.Series) -> pd.Index | int:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        return int(values.max()) if len(values) else 0
    names: pd.Index = pd.Index(np.asarray(values.unique(), dtype=object))
    return names


def _keys(table: pd.DataFrame, columns: Sequence[str], known: Sequence[pd.Index | int]) -> Integers:
    """One number for the values of a row; -1 where one of them is not known."""
    key, unknown = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=bool)
    for name, own in zip(columns, known, strict=True):
        if isinstance(own, int):
            codes, most = table[name].to_numpy(dtype=np.int64), own
        else:
            codes, most = codes_in(table[name], own), len(own)
        unknown |= (codes < 0) | (codes > most)
        key = key * (most + 1) + codes
    return np.where(unknown, IN_NONE, key)


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


class Compared:
    """Sides and changes of any number of metrics; the change is a ratio, of `additive` metrics a difference."""

    def __init__(
        self, windows: pd.DataFrame, contrasts: pd.DataFrame, additive: Container[object], metrics: Sequence[str] = ()
    ) -> None:
        """Find once what is compared with what."""
        self._differences, self._additive = Differences.of_contrasts(windows, contrasts, metrics), additive
        self.number, self.numbers = self._differences.number, self._differences.numbers

    def add(self, parts: Sequence[Measured]) -> None:
        """Take in some launches."""
        at, metric, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        metrics = self._differences.metrics
        values = Values.of(at, metric, value, len(metrics))
        self._differences.add(values, np.arange(len(metrics)), self._sides)

    def _sides(self, scene: Floats, base: Floats) -> Mapping[str, Floats]:
        additive = np.array([name in self._additive for name in self._differences.metrics], dtype=bool)
        scene, base = (
            np.where(additive, values, np.log(np.where(values > 0, values, np.nan))) for values in (scene, base)
        )
        return {"change": scene - base, "value": scene, "baseline": base}

    def table(self) -> pd.DataFrame:
        """Each side and its interval, on the scale of its change, by row, platform and metric."""
        whole = self._differences.launches
        if whole.empty:
            return whole
        sides = {name: estimated(whole, name) for name in SIDES}
        table = self._differences.named(sides["change"][["launches", "rounds"]], ["metric"])
        additive = table["metric"].map(lambda name: name in self._additive).astype(bool)
        table["scale"] = np.where(additive, "points", "ratio")
        for name, estimates in sides.items():
            middle, own = "baseline_value" if name == "baseline" else name, estimates.reset_index(drop=True)
            table = table.assign(
                **columns_of(
                    own, middle, lambda values: values.where(additive, ratio(values.mask(additive))), ends=name
                )
            )
        return table
