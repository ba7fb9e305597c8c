"""Counts -> metrics by window: every event per unit of progress, and the ratios of two events of the same window.

What was counted for less than nearly all of a member's time is in none;
events that stand in no ratio for the leads are named with the reason.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import declared, in_order, of_counts, of_numbers, of_texts
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.keys import PLATFORM_WINDOW
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.window_values import (
    Differences,
    Integers,
    Values,
    WindowPlaces,
    by_row,
    coded,
    codes_in,
    codes_of,
    combinations,
    estimated,
    reduced,
)
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import TOPDOWN
from castmates.results.columns.study import frame
from castmates.study.counter_keys import BY_NAME, TREE, is_miss, is_stall

FULLY_COUNTED = 0.95  # share of its time: what was counted for less is shown nowhere
USABLE = ("counted", "scaled")
CYCLES, INSTRUCTIONS, TASK_CLOCK = "cycles", "instructions", "task-clock"
IPC, PER_1000, PER_CYCLE = "instructions per cycle", "per 1000 instructions", "per cycle"
GHZ = "GHz while running"
ANSWERED = "answered"  # by a service, per second
USER_ONLY = "user mode only"  # in the note of a count
WHOLE_CPU = "cpu"  # a scope, whose task-clock runs on while nobody does

Marks = npt.NDArray[np.bool_]
LEFT_OUT: Columns = {"event": "str", "status": "str", "reason": "str"}


@dataclass(frozen=True)
class Work:
    """What members did in windows."""

    seconds: Floats
    rate: Floats

    @classmethod
    def of(cls, windows: pd.DataFrame) -> "Work":
        """How long the slices of each of these windows were open, and the member's rate in them.

        A service is judged by its latency; what it did is what it answered.
        """
        rate = windows["rate"]
        rate = windows[ANSWERED].fillna(rate) if ANSWERED in windows else rate
        return cls(windows["open_s"].to_numpy(dtype=float), rate.to_numpy(dtype=float))


def with_work(windows: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """These columns of windows, and what services answered, where that is known."""
    return [*columns, *([ANSWERED] if ANSWERED in windows else [])]


def usable(counts: pd.DataFrame) -> Marks:
    """Which rows were counted in whole windows, and for all of the time."""
    whole = counts["status"].isin(USABLE) & (counts["phase"] == "") & (counts["source"] == "perf_event_open")
    return (whole & ~(counts["running"] < FULLY_COUNTED)).to_numpy(dtype=bool)


def events_in(counts: pd.DataFrame, rows: Marks) -> list[str]:
    """The events of these rows, in the order in which they come first."""
    codes, names = codes_of(counts["event"])
    return [str(name) for name in names[pd.unique(codes[rows])]]


def per_unit(counts: pd.DataFrame, at: Integers, events: Sequence[str], work: Work) -> tuple[Values, list[str]]:
    """All metrics of these events by window, and their names; what is not above zero has no logarithm and is left out.

    `at` is the window of each row, -1 where it is in none; `work` is that of all windows.
    """
    value = counts["value"].to_numpy(dtype=float)
    own = (at >= 0) & ~np.isnan(value)
    column = codes_in(counts["event"], events)[own]
    raw = Values.of(at[own], column, value[own], len(events))  # an event that was counted twice has the mean
    seconds, rate = work.seconds[raw.rows], work.rate[raw.rows]
    with np.errstate(invalid="ignore", divide="ignore"):
        metrics, names = with_ratios(raw.values / (seconds * rate)[:, np.newaxis], events)
    if GHZ in names:
        metrics[np.isin(raw.rows, at[_without_clock(counts)]), names.index(GHZ)] = np.nan
    return Values(raw.rows, np.where((rate > 0)[:, np.newaxis], metrics, np.nan)), names


def with_ratios(counts: Floats, events: Sequence[str]) -> tuple[Floats, list[str]]:
    """A column per metric of these counts per unit, and their names; NaN where none is above zero."""
    place, names = {name: number for number, name in enumerate(events)}, metric_names(events)
    columns = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for name in names:
            upper, *lower = (counts[:, place[event]] for event in events_of(name))
            columns.append(upper / lower[0] * (1000 if name.endswith(PER_1000) else 1.0) if lower else upper)
        values = np.column_stack(columns) if columns else np.empty((len(counts), 0))
        return np.where((values > 0) & np.isfinite(values), values, np.nan), names


def _without_clock(counts: pd.DataFrame) -> Marks:
    """Which rows give no clock: cycles without the kernel's part, and the task-clock of a CPU, which never rests."""
    if "scope" not in counts or "note" not in counts:
        return np.zeros(len(counts), dtype=bool)
    of_user = (counts["event"] == CYCLES) & counts["note"].astype(str).str.contains(USER_ONLY, regex=False)
    of_cpu = (counts["event"] == TASK_CLOCK) & (counts["scope"] == WHOLE_CPU)
    return (of_user | of_cpu).to_numpy(dtype=bool)


def metric_names(events: Sequence[str]) -> list[str]:
    """The metrics that can be made of these events, in the order in which they are shown."""
    known = set(events)
    ghz = [GHZ] if {CYCLES, TASK_CLOCK} <= known else []
    stalled = [f"{event} {PER_CYCLE}" for event in events if is_stall(event) and CYCLES in known]
    if INSTRUCTIONS not in known:
        return [*events, *ghz, *stalled]
    per_1000 = [f"{event} {PER_1000}" for event in events if is_miss(event)]
    return [*events, *([IPC] if CYCLES in known else []), *ghz, *per_1000, *stalled]


def events_of(metric: str) -> list[str]:
    """The events that a metric is made of: a ratio of two has the upper one first."""
    if metric == IPC:
        return [INSTRUCTIONS, CYCLES]
    if metric == GHZ:  # cycles in a nanosecond
        return [CYCLES, TASK_CLOCK]
    for ending, lower in ((PER_1000, INSTRUCTIONS), (PER_CYCLE, CYCLES)):
        if metric.endswith(f" {ending}"):
            return [metric.removesuffix(f" {ending}"), lower]
    return [metric]


def is_per_unit(metric: str) -> bool:
    """Whether it is compared with the work that was done, and not against another event."""
    return len(events_of(metric)) == 1


class LeftOut:
    """Gathers them from some whole launches at a time, without the events that stand in a ratio anywhere."""

    def __init__(self) -> None:
        """Begin with none."""
        self._good: set[str] = set()
        self._reasons: list[pd.DataFrame] = []

    def add(self, counts: pd.DataFrame, ours: Marks, usable: Marks) -> None:
        """Take in some rows: `ours` are those of a lead's windows."""
        ours = ours & (counts["phase"] == "").to_numpy(dtype=bool)
        self._good |= set(events_in(counts, ours & usable & (counts["value"] > 0).to_numpy(dtype=bool)))
        rows = counts[ours & ~counts["event"].isin(list(self._good)).to_numpy(dtype=bool)]
        zeros = rows.assign(zero=rows["value"] == 0)
        names = ["event", "status", "note"]
        reasons = zeros.groupby(names, sort=False, observed=True, dropna=False).agg(
            rows=("zero", "size"), zeros=("zero", "sum"), share=("running", "sum"), shares=("running", "count")
        )
        self._reasons.append(reasons.reset_index().astype(dict.fromkeys(names, "str")).fillna({"note": ""}))

    def table(self) -> pd.DataFrame:
        """Each event with its status and its most frequent reason."""
        if not self._reasons:
            return frame([], LEFT_OUT)
        reasons = pd.concat(self._reasons, ignore_index=True)
        reasons = reasons[~reasons["event"].isin(list(self._good))]
        return frame([_row(str(event), rows) for event, rows in reasons.groupby("event", sort=False)], LEFT_OUT)


def _row(event: str, reasons: pd.DataFrame) -> dict[str, str]:
    spoilt = reasons["status"].isin(USABLE)
    if spoilt.all():
        rows, zeros, share, shares = (reasons[name].sum() for name in ("rows", "zeros", "share", "shares"))
        why = f"counted for {share / shares:.0%} of the member's time, where {FULLY_COUNTED:.0%} are needed"
        return {
            "event": event,
            "status": str(reasons.groupby("status")["rows"].sum().idxmax()),
            "reason": "0 in every window" if zeros == rows else why,
        }
    status, reason = most_frequent(reasons[~spoilt])
    return {"event": event, "status": status, "reason": reason}


def most_frequent(reasons: pd.DataFrame) -> tuple[str, str]:
    """The status and the note that most `rows` have."""
    most = reasons.groupby(["status", "note"])["rows"].sum().sort_values(ascending=False, kind="stable").reset_index()
    return str(most["status"].iloc[0]), str(most["note"].iloc[0])


# Where the slots of each lead's processors go: alone, beside its antagonists, and the difference, in points of 100.
#
# A difference is taken inside a round, between the windows of a co-run and alone, and averaged over launches like every
# effect; shares are already relative, so that differences need no logarithm.

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
