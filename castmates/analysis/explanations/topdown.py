"""Where the slots of each lead's processors go: alone, beside its antagonists, and the difference, in points of 100.

A difference is taken inside a round, between the windows of a co-run and alone, and averaged over launches like every
effect; shares are already relative, so that differences need no logarithm.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order, of_counts, of_numbers, of_texts
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, most_frequent
from castmates.analysis.keys import PLATFORM_WINDOW
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.name_codes import coded, combinations
from castmates.analysis.statistics.window_values import Differences, Values, WindowPlaces, by_row, estimated, reduced
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import TOPDOWN
from castmates.results.columns.study import frame
from castmates.study.topdown_tree import BY_NAME, TREE

KINDS = ("alone", "corun")
_ROW = ["platform", "workload", "member", "mix", "partition", "kind"]
_ASKED = dict.fromkeys([*PLATFORM_WINDOW, *_ROW, "round", "valid"])  # of windows
_CATEGORY = ["phase", "level", "metric"]
_ORDER = {category.name: place for place, category in enumerate(TREE)}

# `mix` is "" for alone, `phase` for the whole window; `share` is per cent of slots on levels 1 and 2, of cycles on
# level 3, and `running` the least share of the time for which it was counted.
SHARES: Columns = {
    **of_texts("lead member kind mix partition phase"),
    **of_counts("level"),
    **of_texts("metric parent"),
    **of_numbers("share low high running"),
    **of_counts("launches windows"),
    **of_texts("platform"),
}
NEEDED = [*PLATFORM_WINDOW, *_CATEGORY, "value", "running", "status", "note"]  # of topdown.parquet
NAMES = [name for name in NEEDED if TOPDOWN[name] == "str"]  # of these; they may be categories
Topdown = pd.DataFrame | Iterable[pd.DataFrame]  # all, or some whole launches at a time
# `alone` and `corun` are means over the rounds that are paired, per cent; `points` is corun - alone.
CHANGES: Columns = {
    **of_texts("lead member mix partition phase"),
    **of_counts("level"),
    **of_texts("metric"),
    **of_numbers("alone corun points points_low points_high within_low within_high"),
    **of_counts("launches rounds"),
    **of_texts("platform"),
}


def topdown_tables(topdown: Topdown, windows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both the shares and the changes, of the leads' valid windows alone and beside antagonists."""
    ours = (windows["role"] == "lead") & windows["valid"] & windows["kind"].isin(KINDS)
    known = _Leads(coded(windows.loc[ours, list(_ASKED)]))
    for part in [topdown] if isinstance(topdown, pd.DataFrame) else topdown:
        known.add(part)
    return known.shares(), known.changes()


class _Leads:
    """The slots of the leads, from some whole launches at a time."""

    def __init__(self, windows: pd.DataFrame) -> None:
        """Find once what is compared with what."""
        self._places, self._changes = WindowPlaces.of(windows, PLATFORM_WINDOW), Differences.of_coruns(windows, _ROW)
        self._groups = self._changes.groups
        self._shares: list[pd.DataFrame] = []
        self._running: list[pd.Series] = []  # the least, by row

    def add(self, topdown: pd.DataFrame) -> None:
        """Take in some launches."""
        at = self._places.find(topdown)
        counted = topdown["status"].isin(USABLE) & topdown["value"].notna() & topdown["metric"].isin(list(BY_NAME))
        here = counted.to_numpy(dtype=bool) & (at >= 0)
        rows, at = topdown[[*_CATEGORY, "value", "running"]][here], at[here]
        value, running = (rows[name].to_numpy(dtype=float) for name in ("value", "running"))
        column, categories = combinations(rows, _CATEGORY)
        numbers = self._changes.numbers(categories.itertuples(index=False, name=None))
        group = numbers[column] * self._groups.size + self._groups.number[at]
        self._shares.append(reduced(group, {"share": 100 * value}))
        self._running.append(rows["running"].groupby(group // max(self._groups.launches, 1)).min())
        whole = ~(running < FULLY_COUNTED)
        self._changes.add(Values.of(at[whole], column[whole], value[whole], len(categories)), numbers, _in_points)

    def shares(self) -> pd.DataFrame:
        """The shares of every scene."""
        if not sum(map(len, self._shares)):
            return frame([], SHARES)
        table = estimated(by_row(self._shares, self._groups.launches), "share")
        table["running"] = pd.concat(self._running).groupby(level=0).min()
        table = self._changes.named(table.rename(columns={"mean": "share", "rounds": "windows"}), _CATEGORY)
        return _finished(table, SHARES, [*_sorted_by("kind"), "metric"])

    def changes(self) -> pd.DataFrame:
        """Co-runs against alone."""
        table = self._changes.table(_CATEGORY)
        if table.empty:
            return frame([], CHANGES)
        names = {"mean": "points", "low": "points_low", "high": "points_high"}
        return _finished(table.rename(columns=names), CHANGES, [*_sorted_by(), "metric"])


def _in_points(corun: Floats, alone: Floats) -> dict[str, Floats]:
    return {"difference": 100 * (corun - alone), "corun": 100 * corun, "alone": 100 * alone}


def why_none(topdown: Topdown, windows: pd.DataFrame) -> tuple[str, str]:
    """The status and the reason that most windows of the leads give for having no share; "" where none gives any."""
    places, reasons = WindowPlaces.of(windows[windows["role"] == "lead"], PLATFORM_WINDOW), []
    for part in [topdown] if isinstance(topdown, pd.DataFrame) else topdown:
        lacking = part[~part["status"].isin(USABLE).to_numpy(dtype=bool) & (places.find(part) >= 0)]
        number, kinds = combinations(lacking, ["status", "note"])
        reasons.append(kinds.assign(rows=np.bincount(number, minlength=len(kinds))))
    return most_frequent(pd.concat(reasons)) if sum(map(len, reasons)) else ("", "")


def _sorted_by(*more: str) -> list[str]:
    return ["lead", "member", "phase", *more, "mix", "partition"]


def _finished(table: pd.DataFrame, columns: Columns, order: list[str]) -> pd.DataFrame:
    """These columns, alone before the co-runs, categories in the order of the tree."""
    table = table.assign(lead=workloads_of(table["member"]), parent=[BY_NAME[name].parent for name in table["metric"]])
    kinds = {name: place for place, name in enumerate(KINDS)}
    return declared(in_order(table, order, metric=_ORDER, kind=kinds), columns)
