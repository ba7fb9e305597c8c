"""What was counted, per unit of progress: each co-run of a lead against its `alone` scene, paired inside rounds.

A change is the mean over launches of log(co-run) - log(alone), like every effect; the slowdown itself is no part of it,
because both sides are per unit of work done. What was counted for less than nearly all of a member's time
is in no ratio.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order, within_launch
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.explanations.counted_metrics import (
    USER_ONLY,
    LeftOut,
    Work,
    events_in,
    events_of,
    is_per_unit,
    metric_names,
    per_unit,
    usable,
    with_work,
)
from castmates.analysis.keys import PLATFORM_WINDOW
from castmates.analysis.statistics.intervals import columns_of, ratio
from castmates.analysis.statistics.name_codes import Integers, coded, combinations
from castmates.analysis.statistics.window_values import Differences, Values, WindowPlaces, both_sides
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame

_WHO = ["platform", "workload", "member"]
_ROW = [*_WHO, "unit", "mix", "partition"]
_ASKED = dict.fromkeys([*PLATFORM_WINDOW, *_ROW, "round", "kind", "valid", "open_s", "rate"])  # of windows

CHANGES: Columns = {
    "lead": "str",
    "member": "str",
    "mix": "str",
    "partition": "str",
    "metric": "str",  # an event per unit of progress, or a ratio of two events
    "unit": "str",  # of progress; "" for a ratio
    "alone": "float64",  # geometric mean over the rounds that are paired
    "corun": "float64",
    "ratio": "float64",  # corun / alone
    "ratio_low": "float64",  # 95 % between launches; NaN below three launches
    "ratio_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "launches": "int64",
    "rounds": "int64",
    "scope": "str",  # by which its events were counted: cgroup, thread, cpu; several where members or launches differ
    "mode": "str",  # "user mode only" where any of them was so; "" for the kernel's part too
    "platform": "str",
}
# Of counters.parquet.
NEEDED = [*PLATFORM_WINDOW, "event", "value", "status", "running", "scope", "source", "phase", "note"]
NAMES = [name for name in NEEDED if COUNTERS[name] == "str"]  # of these; they may be categories
Counts = pd.DataFrame | Iterable[pd.DataFrame]  # all, or some whole launches at a time


def counter_tables(counts: Counts, windows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per lead, co-run scene and metric that was counted in both windows of some round; and what is in none."""
    leads = _Leads(coded(windows.loc[windows["role"] == "lead", with_work(windows, _ASKED)]))
    for part in [counts] if isinstance(counts, pd.DataFrame) else counts:
        leads.add(part)
    return leads.table(), leads.left_out.table()


class _Leads:
    """The counts of the leads, from some whole launches at a time."""

    def __init__(self, windows: pd.DataFrame) -> None:
        """Find once what is compared with what."""
        self.left_out = LeftOut()
        self._places = WindowPlaces.of(windows, PLATFORM_WINDOW)
        self._differences = Differences.of_coruns(windows, _ROW)
        self._valid, self._work = windows["valid"].to_numpy(dtype=bool), Work.of(windows)
        self._who, self._members = combinations(windows, _WHO)
        self._events: dict[str, None] = {}
        self._scopes: list[pd.DataFrame] = []

    def add(self, counts: pd.DataFrame) -> None:
        """Take in some launches."""
        at, counted = self._places.find(counts), usable(counts)
        self.left_out.add(counts, at >= 0, counted)
        at = np.where(counted & np.append(self._valid, False)[at], at, -1)
        events = events_in(counts, counted)
        self._events |= dict.fromkeys(events)
        self._scopes.append(_scopes_noted(counts, at, self._who))
        measured, names = per_unit(counts, at, events, self._work)
        logs = Values(measured.rows, np.log(measured.values))
        self._differences.add(logs, self._differences.numbers(names), both_sides)

    def table(self) -> pd.DataFrame:
        """The changes."""
        table = self._differences.table(["metric"])
        if table.empty:
            return frame([], CHANGES)
        table = _as_ratios(table)
        scopes = pd.concat(self._scopes).drop_duplicates()
        table = _with_scopes(table, self._members.iloc[scopes["who"]].reset_index(drop=True).join(scopes.reset_index()))
        order = {name: place for place, name in enumerate(metric_names(list(self._events)))}
        return declared(in_order(table, ["lead", "member", "metric", "mix", "partition"], metric=order), CHANGES)


def _scopes_noted(counts: pd.DataFrame, at: Integers, who: Integers) -> pd.DataFrame:
    """By which scope each event of each of these was counted, and its note; `at` is the row of its window."""
    seen = counts[["event", "scope", "note"]][at >= 0].assign(who=who[at[at >= 0]])
    return combinations(seen, ["who", "event", "scope", "note"])[1]


def _as_ratios(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        lead=workloads_of(table["member"]),
        unit=table["unit"].where(table["metric"].map(is_per_unit), ""),
        alone=ratio(table["baseline"]),
        corun=ratio(table["scene"]),
        **columns_of(table, "ratio", ratio),
        **within_launch(table),
    )


def _with_scopes(table: pd.DataFrame, seen: pd.DataFrame) -> pd.DataFrame:
    """The table with the scopes and the mode of the events that each of its metrics is made of."""
    scopes: dict[tuple[str, ...], set[str]] = {}
    user_only: set[tuple[str, ...]] = set()
    for *key, scope, note in seen[[*_WHO, "event", "scope", "note"]].itertuples(index=False, name=None):
        scopes.setdefault(tuple(key), set()).add(scope)
        if USER_ONLY in note:
            user_only.add(tuple(key))
    keys = [
        [(*who, event) for event in events_of(metric)]
        for *who, metric in table[[*_WHO, "metric"]].itertuples(index=False, name=None)
    ]
    return table.assign(
        scope=[", ".join(sorted(set().union(*(scopes.get(key, set()) for key in own)) - {""})) for own in keys],
        mode=[USER_ONLY if user_only & set(own) else "" for own in keys],
    )
