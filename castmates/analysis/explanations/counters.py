"""What was counted, per unit of progress: each co-run of a lead against its `alone` scene, paired inside rounds.

A change is the mean over launches of log(co-run) - log(alone), like every effect; the slowdown itself is no part of it,
because both sides are per unit of work done. What was counted for less than nearly all of a member's time
is in no ratio.

Counts also go on over the rounds of a launch, scene by scene, and may drift: a drift is taken inside a launch, the last
third of its rounds against the first, and averaged over launches. A slower round is no change of them.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order, of_counts, of_numbers, of_texts, within_launch
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
from castmates.analysis.keys import LAUNCH, PLATFORM_WINDOW, ROUND, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, estimate, ratio
from castmates.analysis.statistics.window_values import (
    Differences,
    Integers,
    Values,
    WindowPlaces,
    both_sides,
    coded,
    combinations,
)
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame

_WHO = ["platform", "workload", "member"]
_ROW = [*_WHO, "unit", "mix", "partition"]
_ASKED = dict.fromkeys([*PLATFORM_WINDOW, *_ROW, "round", "kind", "valid", "open_s", "rate"])  # of windows

# `metric` is an event per unit of progress, or a ratio of two events, which has no `unit`; `alone` and `corun` are
# geometric means over the rounds that are paired, `ratio` is corun / alone. `scope` is by what its events were counted
# (cgroup, thread, cpu; several where members or launches differ), `mode` "user mode only" where any of them was so.
CHANGES: Columns = {
    **of_texts("lead member mix partition metric unit"),
    **of_numbers("alone corun ratio ratio_low ratio_high within_low within_high"),
    **of_counts("launches rounds"),
    **of_texts("scope mode platform"),
}
# Of counters.parquet.
NEEDED = [*PLATFORM_WINDOW, "event", "value", "status", "running", "scope", "source", "phase", "note"]
NAMES = [name for name in NEEDED if COUNTERS[name] == "str"]  # of these; they may be categories
Counts = pd.DataFrame | Iterable[pd.DataFrame]  # all, or some whole launches at a time
FEWEST_ROUNDS = 3  # of a launch in which a metric has a value, or there is no first and last third
KINDS = ("alone", "corun")
OF_STEPS = [*WINDOW, "units", "platform"]  # of steps.parquet
NAMES_OF_STEPS = ["cohort", "member", "platform"]  # of these; they may be categories
_ROUNDS = ["platform", "workload", "member", "unit", "kind", "mix", "partition"]
_ASKED_OF_ROUNDS = list(dict.fromkeys([*PLATFORM_WINDOW, *_ROUNDS, "round", "open_s", "rate"]))  # of windows
# `mix` is "" for alone, and `unit` for a ratio of two events; `iteration` counts units since the start in the middle of
# that round, mean over launches; `value` is a geometric mean over launches.
BY_ROUND: Columns = {
    **of_texts("lead member kind mix partition metric unit"),
    **of_counts("round"),
    **of_numbers("iteration value low high"),
    **of_counts("launches"),
    **of_texts("platform"),
}
# `drift` is the last third of the rounds over the first.
DRIFTS: Columns = {
    **of_texts("lead member kind mix partition metric"),
    **of_numbers("drift drift_low drift_high"),
    **of_counts("launches"),
    **of_texts("platform"),
}


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
        table = table.assign(
            lead=workloads_of(table["member"]),
            unit=table["unit"].where(table["metric"].map(is_per_unit), ""),
            alone=ratio(table["baseline"]),
            corun=ratio(table["scene"]),
            **columns_of(table, "ratio", ratio),
            **within_launch(table),
        )
        scopes = pd.concat(self._scopes).drop_duplicates()
        table = _with_scopes(table, self._members.iloc[scopes["who"]].reset_index(drop=True).join(scopes.reset_index()))
        order = {name: place for place, name in enumerate(metric_names(list(self._events)))}
        return declared(in_order(table, ["lead", "member", "metric", "mix", "partition"], metric=order), CHANGES)


def _scopes_noted(counts: pd.DataFrame, at: Integers, who: Integers) -> pd.DataFrame:
    """By which scope each event of each of these was counted, and its note; `at` is the row of its window."""
    seen = counts[["event", "scope", "note"]][at >= 0].assign(who=who[at[at >= 0]])
    return combinations(seen, ["who", "event", "scope", "note"])[1]


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


def over_rounds(
    counts: Iterable[pd.DataFrame], steps: Iterable[pd.DataFrame], windows: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per lead, scene, metric and round; and a row per lead, scene and metric that has enough rounds."""
    ours = (windows["role"] == "lead") & windows["valid"] & windows["kind"].isin(KINDS)
    leads = coded(windows.loc[ours, with_work(windows, _ASKED_OF_ROUNDS)]).reset_index(drop=True)
    places, work = WindowPlaces.of(leads, PLATFORM_WINDOW), Work.of(leads)
    row, rows = combinations(leads, _ROUNDS)
    found = []
    for part in counts:
        counted = usable(part)
        at = np.where(counted, places.find(part), -1)
        values, names = per_unit(part, at, events_in(part, counted), work)
        there, column = np.nonzero(~np.isnan(values.values))
        window = values.rows[there]
        metric = np.array(names, dtype=object)[column]
        found.append(
            pd.DataFrame({"window": window, "metric": metric, "difference": np.log(values.values[there, column])})
        )
    if not sum(map(len, found)):
        return frame([], BY_ROUND), frame([], DRIFTS)
    known = pd.concat(found, ignore_index=True)
    at = known["window"].to_numpy()
    launch = {name: leads[name].take(at).array for name in ROUND}
    known = known.assign(row=row[at], iteration=_iterations(steps, places, len(leads))[at], **launch)
    known = known.astype({"metric": "category", "launch": "int64", "round": "int64"})
    return _by_round(known, rows), _drifts(known, rows)


def _iterations(steps: Iterable[pd.DataFrame], places: WindowPlaces, windows: int) -> Floats:
    """The mean iteration of each window; NaN where none of its steps is known."""
    total, count = np.zeros(windows), np.zeros(windows)
    for part in steps:
        at = places.find(part)
        inside = at >= 0
        total += np.bincount(at[inside], weights=part["units"].to_numpy(dtype=float)[inside], minlength=windows)
        count += np.bincount(at[inside], minlength=windows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / count, dtype=np.float64)


def _by_round(known: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    by = ["row", "metric", "round"]
    table = estimate(known, by)
    table["iteration"] = known.groupby(by, observed=True)["iteration"].mean()
    table[["value", "low", "high"]] = table[["mean", "low", "high"]].apply(ratio)
    return _finished(table, rows, BY_ROUND)


def _drifts(known: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    launch = ["row", "metric", *LAUNCH]
    ordered = known.sort_values([*launch, "round"])
    within = ordered.groupby(launch, sort=False, observed=True)["difference"]
    count, place = within.transform("size"), within.cumcount()
    third = np.ceil(count / 3)
    enough = count >= FEWEST_ROUNDS
    ends = {
        "last": ordered[enough & (place >= count - third)],
        "first": ordered[enough & (place < third)],
    }
    means = {name: rows_.groupby(launch, observed=True)["difference"].mean() for name, rows_ in ends.items()}
    pairs = (means["last"] - means["first"]).rename("difference").reset_index()
    if pairs.empty:
        return frame([], DRIFTS)
    table = estimate(pairs, ["row", "metric"])
    return _finished(table.assign(**columns_of(table, "drift", ratio)), rows, DRIFTS)


def _finished(table: pd.DataFrame, rows: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """With what the rows stand for; alone before the co-runs."""
    own = table.drop(columns="rounds").reset_index().astype({"metric": "str"})
    about = rows.iloc[own["row"].to_numpy()].reset_index(drop=True)
    whole = pd.concat([about, own.drop(columns="row")], axis=1).assign(lead=workloads_of(about["member"]))
    whole["unit"] = whole["unit"].astype("str").where(whole["metric"].map(is_per_unit), "")
    order = ["lead", "member", "metric", "kind", "mix", "partition", "platform"]
    order = [*order, "round"] if "round" in columns else order
    kinds = {name: place for place, name in enumerate(KINDS)}
    return declared(in_order(whole.astype({"kind": "str"}), order, kind=kinds), columns)
