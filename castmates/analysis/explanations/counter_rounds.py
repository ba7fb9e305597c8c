"""How the counts of leads go on over the rounds of a launch, scene by scene, and whether they drift.

A count is per unit of progress, or over another one, so that a slower round is no change. A drift is taken inside a
launch, the last third of its rounds against the first, and averaged over launches.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.explanations.counted_metrics import Work, events_in, is_per_unit, per_unit, usable, with_work
from castmates.analysis.keys import LAUNCH, PLATFORM_WINDOW, ROUND, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, estimate, ratio
from castmates.analysis.statistics.name_codes import coded, combinations
from castmates.analysis.statistics.window_values import WindowPlaces
from castmates.results.columns.contract import Columns
from castmates.results.columns.study import frame

FEWEST_ROUNDS = 3  # of a launch in which a metric has a value, or there is no first and last third
KINDS = ("alone", "corun")
OF_STEPS = [*WINDOW, "units", "platform"]  # of steps.parquet
NAMES_OF_STEPS = ["cohort", "member", "platform"]  # of these; they may be categories
_ROW = ["platform", "workload", "member", "unit", "kind", "mix", "partition"]
_ASKED = list(dict.fromkeys([*PLATFORM_WINDOW, *_ROW, "round", "open_s", "rate"]))  # of windows

BY_ROUND: Columns = {
    "lead": "str",
    "member": "str",
    "kind": "str",  # alone, corun
    "mix": "str",  # "" for alone
    "partition": "str",
    "metric": "str",
    "unit": "str",  # of progress; "" for a ratio of two events
    "round": "int64",
    "iteration": "float64",  # units since the start in the middle of that round, mean over launches
    "value": "float64",  # geometric mean over launches
    "low": "float64",  # 95 % between launches; NaN below three launches
    "high": "float64",
    "launches": "int64",
    "platform": "str",
}
DRIFTS: Columns = {
    "lead": "str",
    "member": "str",
    "kind": "str",
    "mix": "str",
    "partition": "str",
    "metric": "str",
    "drift": "float64",  # the last third of the rounds over the first
    "drift_low": "float64",  # 95 % between launches; NaN below three launches
    "drift_high": "float64",
    "launches": "int64",
    "platform": "str",
}


def over_rounds(
    counts: Iterable[pd.DataFrame], steps: Iterable[pd.DataFrame], windows: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per lead, scene, metric and round; and a row per lead, scene and metric that has enough rounds."""
    ours = (windows["role"] == "lead") & windows["valid"] & windows["kind"].isin(KINDS)
    leads = coded(windows.loc[ours, with_work(windows, _ASKED)]).reset_index(drop=True)
    places, work = WindowPlaces.of(leads, PLATFORM_WINDOW), Work.of(leads)
    row, rows = combinations(leads, _ROW)
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
