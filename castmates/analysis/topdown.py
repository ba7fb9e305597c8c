"""Where the slots of each lead's processors go: alone, beside its antagonists, and the difference, in points of 100.

A difference is taken inside a round, between the windows of a co-run and of solo, and averaged over blocks like every
effect; shares are already relative, so that differences need no logarithm.
"""

from collections.abc import Iterable

import pandas as pd

from castmates.analysis.counters import FULLY_COUNTED
from castmates.analysis.intervals import estimate
from castmates.analysis.whole_launches import beside
from castmates.study.spec import UNMANAGED
from castmates.study.topdown_tree import BY_NAME, TREE
from castmates.tables import Columns, frame

USABLE = ("counted", "scaled")
KINDS = ("solo", "corun")
_WINDOW = ["platform", "company", "block", "window", "member"]
_ROUND = ["platform", "company", "block", "round", "member", "phase", "metric"]
_ROW = ["platform", "workload", "member", "mix", "partition", "phase", "level", "metric"]
_ORDER = {one.name: place for place, one in enumerate(TREE)}

SHARES: Columns = {
    "lead": "str",
    "member": "str",
    "kind": "str",  # solo, corun
    "mix": "str",  # "" for solo
    "partition": "str",
    "phase": "str",  # "" for the whole window
    "level": "int64",
    "metric": "str",
    "parent": "str",
    "share": "float64",  # per cent: of slots on levels 1 and 2, of cycles on level 3
    "low": "float64",  # 95 % between launches; NaN below three blocks
    "high": "float64",
    "running": "float64",  # the least share of the time for which it was counted
    "blocks": "int64",
    "windows": "int64",
    "platform": "str",
}
Topdown = pd.DataFrame | Iterable[pd.DataFrame]  # all, or some whole launches at a time
CHANGES: Columns = {
    "lead": "str",
    "member": "str",
    "mix": "str",
    "partition": "str",
    "phase": "str",
    "level": "int64",
    "metric": "str",
    "solo": "float64",  # mean over the rounds that are paired, per cent
    "corun": "float64",
    "points": "float64",  # corun - solo
    "points_low": "float64",  # 95 % between launches; NaN below three blocks
    "points_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "platform": "str",
}


def shares(topdown: Topdown, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per lead, scene, phase and category that was counted in any valid window of it."""
    return _shares(usable(topdown, windows))


def tables(topdown: Topdown, windows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both the shares and the changes."""
    rows = usable(topdown, windows)
    return _shares(rows), _changes(rows)


def _shares(rows: pd.DataFrame) -> pd.DataFrame:
    if rows.empty:
        return frame([], SHARES)
    by = [*_ROW, "kind"]
    found = estimate(rows.assign(difference=100 * rows["value"]), by=by)
    found["running"] = rows.groupby(by, observed=True)["running"].min()
    table = found.reset_index().rename(
        columns={"log": "share", "log_low": "low", "log_high": "high", "rounds": "windows"}
    )
    return _finished(table, SHARES, [*_sorted_by("kind"), "metric"])


def changes(topdown: Topdown, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per lead, co-run, phase and category that was fully counted in both windows of some round."""
    return _changes(usable(topdown, windows))


def _changes(rows: pd.DataFrame) -> pd.DataFrame:
    if rows.empty:
        return frame([], CHANGES)
    rows = rows[~(rows["running"] < FULLY_COUNTED)]
    solo = rows[(rows["kind"] == "solo") & (rows["partition"] == UNMANAGED)]
    pairs = rows[rows["kind"] == "corun"].merge(solo[[*_ROUND, "value"]], on=_ROUND, suffixes=("", "_solo"))
    if pairs.empty:
        return frame([], CHANGES)
    pairs["difference"] = 100 * (pairs["value"] - pairs["value_solo"])
    found = estimate(pairs, by=_ROW)
    means = 100 * pairs.groupby([*_ROW, "company", "block"])[["value", "value_solo"]].mean().groupby(_ROW).mean()
    table = found.join(means.rename(columns={"value": "corun", "value_solo": "solo"})).reset_index()
    names = {"log": "points", "log_low": "points_low", "log_high": "points_high"}
    names |= {"log_within_low": "within_low", "log_within_high": "within_high"}
    return _finished(table.rename(columns=names), CHANGES, [*_sorted_by(), "metric"])


def usable(topdown: Topdown, windows: pd.DataFrame) -> pd.DataFrame:
    """The shares of the leads in their valid windows alone and beside antagonists."""
    leads = windows[(windows["role"] == "lead") & windows["valid"] & windows["kind"].isin(KINDS)]
    found = []
    for part, own in beside(topdown, leads):
        counted = part[part["status"].isin(USABLE) & part["value"].notna() & part["metric"].isin(BY_NAME)]
        found.append(counted.merge(own[[*_WINDOW, "kind", "mix", "partition", "workload"]], on=_WINDOW))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def why_none(topdown: pd.DataFrame, windows: pd.DataFrame) -> tuple[str, str]:
    """The status and the reason that most windows of the leads give for having no share; "" where none gives any."""
    leads = windows.loc[windows["role"] == "lead", _WINDOW].drop_duplicates()
    rows = topdown[~topdown["status"].isin(USABLE)].merge(leads, on=_WINDOW)
    if rows.empty:
        return "", ""
    status, note = rows[["status", "note"]].value_counts().index[0]
    return str(status), str(note)


def _sorted_by(*more: str) -> list[str]:
    return ["lead", "member", "phase", *more, "mix", "partition"]


def _finished(table: pd.DataFrame, columns: Columns, order: list[str]) -> pd.DataFrame:
    """These columns, solo before the co-runs, categories in the order of the tree."""
    table = table.assign(lead=table["workload"], parent=[BY_NAME[name].parent for name in table["metric"]])
    ranks = {"metric": _ORDER, "kind": {name: place for place, name in enumerate(KINDS)}}
    table = table.sort_values(order, key=lambda one: one.map(ranks[one.name]) if one.name in ranks else one)
    return table[list(columns)].astype(dict(columns)).reset_index(drop=True)
