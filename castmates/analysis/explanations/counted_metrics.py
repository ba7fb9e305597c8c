"""Counts -> metrics by window: every event per unit of progress, and the ratios of two events of the same window.

What was counted for less than nearly all of a member's time is in none;
events that stand in no ratio for the leads are named with the reason.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.name_codes import Integers, codes_in, codes_of
from castmates.analysis.statistics.window_values import Values
from castmates.results.columns.contract import Columns
from castmates.results.columns.study import frame
from castmates.study.event_sets import is_miss, is_stall

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
