"""What was counted, per unit of progress: each co-run of a lead against its solo, paired inside rounds.

A change is the mean over blocks of log(co-run) - log(solo), like every effect; the slowdown itself is no part of it,
for both sides are held against the work that was done. What was counted for less than nearly all of a member's time
is in no ratio.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from castmates.analysis.intervals import estimate, ratio
from castmates.study.spec import UNMANAGED
from castmates.tables import Columns, frame

FULLY_COUNTED = 0.95  # share of its time: what was counted for less is shown nowhere
USABLE = ("counted", "scaled")
USER_ONLY = "user mode only"  # in the note of a count
CYCLES, INSTRUCTIONS = "cycles", "instructions"
IPC, PER_1000 = "instructions per cycle", "per 1000 instructions"
_WINDOW = ["platform", "company", "block", "window", "member"]
_KEPT = [*_WINDOW, "round", "kind", "mix", "partition", "workload", "unit", "rate", "seconds"]
# What makes two windows a pair.
_ROUND = ["platform", "company", "block", "round", "member", "metric"]
_ROW = ["platform", "workload", "member", "unit", "metric", "mix", "partition"]

CHANGES: Columns = {
    "lead": "str",
    "member": "str",
    "mix": "str",
    "partition": "str",
    "metric": "str",  # an event per unit of progress, or a ratio of two events
    "unit": "str",  # of progress; "" for a ratio
    "solo": "float64",  # geometric mean over the rounds that are paired
    "corun": "float64",
    "ratio": "float64",  # corun / solo
    "ratio_low": "float64",  # 95 % between launches; NaN below three blocks
    "ratio_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "scope": "str",  # by which its events were counted: cgroup, thread, cpu; several where members or blocks differ
    "mode": "str",  # "user mode only" where any of them was so; "" for the kernel's part too
    "platform": "str",
}
LEFT_OUT: Columns = {"event": "str", "status": "str", "reason": "str"}


def changes(counts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per lead, co-run scene and metric that was counted in both windows of some round."""
    values = per_unit(counts, windows)
    solo = values[(values["kind"] == "solo") & (values["partition"] == UNMANAGED)]
    corun = values[values["kind"] == "corun"]
    pairs = corun.merge(solo[[*_ROUND, "log"]], on=_ROUND, suffixes=("", "_solo"))
    if pairs.empty:
        return frame([], CHANGES)
    pairs["difference"] = pairs["log"] - pairs["log_solo"]
    found = estimate(pairs, by=_ROW)
    means = pairs.groupby([*_ROW, "company", "block"])[["log", "log_solo"]].mean().groupby(_ROW).mean()
    table = found.join(means.rename(columns={"log": "log_corun"})).reset_index()
    table = table.assign(
        lead=table["workload"],
        unit=table["unit"].where(table["metric"].map(_is_per_unit), ""),
        solo=ratio(table["log_solo"]),
        corun=ratio(table["log_corun"]),
        ratio=ratio(table["log"]),
        ratio_low=ratio(table["log_low"]),
        ratio_high=ratio(table["log_high"]),
        within_low=ratio(table["log_within_low"]),
        within_high=ratio(table["log_within_high"]),
    )
    table = _with_ways(table, counts, windows)
    order = {name: place for place, name in enumerate(dict.fromkeys(values["metric"]))}
    table = table.sort_values(
        ["lead", "member", "metric", "mix", "partition"],
        key=lambda one: one.map(order) if one.name == "metric" else one,
    )
    return table[list(CHANGES)].astype(dict(CHANGES)).reset_index(drop=True)


def per_unit(counts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The logarithms of all metrics of the leads in their valid windows; zeros have none and are left out."""
    rows = windows[(windows["role"] == "lead") & windows["valid"] & (windows["rate"] > 0)]
    rows = rows.assign(seconds=(rows["close_ns"] - rows["open_ns"]) / 1e9)[_KEPT]
    usable = _usable(counts)
    wide = usable.pivot_table(index=_WINDOW, columns="event", values="value", sort=False)
    events = list(dict.fromkeys(usable["event"]))
    both = rows.merge(wide.reset_index(), on=_WINDOW)
    parts = [both[_KEPT].assign(metric=name, value=value) for name, value in _metrics(both, events)]
    found = pd.concat(parts, ignore_index=True) if parts else both.assign(metric="", value=np.nan)
    found = found[found["value"] > 0]
    return found.assign(log=np.log(found["value"].to_numpy(dtype=float)))


def _with_ways(table: pd.DataFrame, counts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The table with the scopes and the mode of the events that each of its metrics is made of."""
    who = ["platform", "workload", "member"]
    leads = windows.loc[(windows["role"] == "lead") & windows["valid"], [*_WINDOW, "workload"]]
    seen = _usable(counts).merge(leads, on=_WINDOW)[[*who, "event", "scope", "note"]].drop_duplicates()
    scopes, modes = [], []
    for row in table.to_dict("records"):
        own = seen[(seen[who] == [row[key] for key in who]).all(axis=1) & seen["event"].isin(_events_of(row["metric"]))]
        scopes.append(", ".join(sorted(set(own["scope"]) - {""})))
        modes.append(USER_ONLY if own["note"].str.contains(USER_ONLY, regex=False).any() else "")
    return table.assign(scope=scopes, mode=modes)


def _events_of(metric: str) -> list[str]:
    if metric == IPC:
        return [INSTRUCTIONS, CYCLES]
    return [metric.removesuffix(f" {PER_1000}"), INSTRUCTIONS] if metric.endswith(PER_1000) else [metric]


def left_out(counts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The events that stand in no ratio for the leads, each with its status and the reason that was given most."""
    leads = windows.loc[windows["role"] == "lead", _WINDOW].drop_duplicates()
    rows = counts[counts["phase"] == ""].merge(leads, on=_WINDOW)
    usable = _usable(rows)
    rows = rows[~rows["event"].isin(set(usable.loc[usable["value"] > 0, "event"]))]
    found = []
    for event, group in rows.groupby("event", sort=False):
        spoilt = group["status"].isin(USABLE)
        if spoilt.all():
            zero = (group["value"] == 0).all()
            status, reason = group["status"].mode().iloc[0], "0 in every window" if zero else _short(group)
        else:
            status, reason = group.loc[~spoilt, ["status", "note"]].value_counts().index[0]
        found.append({"event": event, "status": status, "reason": reason})
    return frame(found, LEFT_OUT)


def _usable(counts: pd.DataFrame) -> pd.DataFrame:
    whole = counts["status"].isin(USABLE) & (counts["phase"] == "") & (counts["source"] == "perf_event_open")
    return counts[whole & ~(counts["running"] < FULLY_COUNTED)]


def _metrics(both: pd.DataFrame, events: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
    """Every event per unit of progress; then the ratios whose both events were counted in the same window."""
    for event in events:
        yield event, both[event] / both["seconds"] / both["rate"]
    if INSTRUCTIONS not in events:
        return
    if CYCLES in events:
        yield IPC, both[INSTRUCTIONS] / both[CYCLES]
    for event in events:
        if event.endswith("misses"):
            yield f"{event} {PER_1000}", 1000 * both[event] / both[INSTRUCTIONS]


def _is_per_unit(metric: str) -> bool:
    return metric != IPC and not metric.endswith(PER_1000)


def _short(group: pd.DataFrame) -> str:
    return f"counted for {group['running'].mean():.0%} of the member's time, where {FULLY_COUNTED:.0%} are needed"
