"""What was counted, per unit of progress: each co-run of a lead against its solo, paired inside rounds.

A change is the mean over blocks of log(co-run) - log(solo), like every effect; the slowdown itself is no part of it,
for both sides are held against the work that was done. What was counted for less than nearly all of a member's time
is in no ratio.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.intervals import BLOCK, over_launches, per_launch, ratio
from castmates.analysis.whole_launches import beside
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
_WHO = ["platform", "workload", "member"]
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
NEEDED = [*_WINDOW, "event", "value", "status", "running", "scope", "source", "phase", "note"]  # of counters.parquet
Counts = pd.DataFrame | Iterable[pd.DataFrame]  # all, or some whole launches at a time


def changes(counts: Counts, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per lead, co-run scene and metric that was counted in both windows of some round."""
    parts = [_of_part(part, own) for part, own in beside(counts, windows)]
    launches = [part.launches for part in parts if len(part.launches)]
    if not launches:
        return frame([], CHANGES)
    whole = pd.concat(launches).sort_index()
    table = over_launches(whole[["value", "rounds", "variance"]], _ROW)
    table = table.join(whole[["log_corun", "log_solo"]].groupby(_ROW).mean()).reset_index()
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
    table = _with_ways(table, pd.concat([part.ways for part in parts]).drop_duplicates())
    events = list(dict.fromkeys(event for part in parts for event in part.events))
    order = {name: place for place, name in enumerate(_names(events))}
    table = table.sort_values(
        ["lead", "member", "metric", "mix", "partition"],
        key=lambda one: one.map(order) if one.name == "metric" else one,
    )
    return table[list(CHANGES)].astype(dict(CHANGES)).reset_index(drop=True)


@dataclass(frozen=True)
class _Part:
    """What some launches say."""

    launches: pd.DataFrame  # by _ROW and launch
    ways: pd.DataFrame
    events: list[str]


def _of_part(counts: pd.DataFrame, windows: pd.DataFrame) -> _Part:
    values, usable = per_unit(counts, windows), _usable(counts)
    solo = values[(values["kind"] == "solo") & (values["partition"] == UNMANAGED)]
    corun = values[values["kind"] == "corun"]
    pairs = corun.merge(solo[[*_ROUND, "log"]], on=_ROUND, suffixes=("", "_solo"))
    pairs["difference"] = pairs["log"] - pairs["log_solo"]
    means = pairs.groupby([*_ROW, *BLOCK])[["log", "log_solo"]].mean().rename(columns={"log": "log_corun"})
    leads = windows.loc[(windows["role"] == "lead") & windows["valid"], [*_WINDOW, "workload"]]
    ways = usable.merge(leads, on=_WINDOW)[[*_WHO, "event", "scope", "note"]].drop_duplicates()
    return _Part(per_launch(pairs, _ROW).join(means), ways, usable["event"].unique().tolist())


def per_unit(counts: pd.DataFrame, windows: pd.DataFrame, roles: Sequence[str] = ("lead",)) -> pd.DataFrame:
    """The logarithms of all metrics of these members in their valid windows; zeros have none and are left out."""
    rows = windows[windows["role"].isin(roles) & windows["valid"] & (windows["rate"] > 0)]
    rows = rows.assign(seconds=(rows["close_ns"] - rows["open_ns"]) / 1e9)[_KEPT]
    usable = _usable(counts)
    wide = usable.pivot_table(index=_WINDOW, columns="event", values="value", sort=False)
    events = usable["event"].unique().tolist()
    both = rows.merge(wide.reset_index(), on=_WINDOW)
    parts = [both[_KEPT].assign(metric=name, value=value) for name, value in _metrics(both, events)]
    found = pd.concat(parts, ignore_index=True) if parts else both.assign(metric="", value=np.nan)
    found = found[found["value"] > 0]
    return found.assign(log=np.log(found["value"].to_numpy(dtype=float)))


def _with_ways(table: pd.DataFrame, seen: pd.DataFrame) -> pd.DataFrame:
    """The table with the scopes and the mode of the events that each of its metrics is made of."""
    scopes: dict[tuple[str, ...], set[str]] = {}
    user_only: set[tuple[str, ...]] = set()
    for *key, scope, note in seen[[*_WHO, "event", "scope", "note"]].itertuples(index=False, name=None):
        scopes.setdefault(tuple(key), set()).add(scope)
        if USER_ONLY in note:
            user_only.add(tuple(key))
    keys = [
        [(*who, event) for event in _events_of(metric)]
        for *who, metric in table[[*_WHO, "metric"]].itertuples(index=False, name=None)
    ]
    return table.assign(
        scope=[", ".join(sorted(set().union(*(scopes.get(key, set()) for key in own)) - {""})) for own in keys],
        mode=[USER_ONLY if user_only & set(own) else "" for own in keys],
    )


def _events_of(metric: str) -> list[str]:
    if metric == IPC:
        return [INSTRUCTIONS, CYCLES]
    return [metric.removesuffix(f" {PER_1000}"), INSTRUCTIONS] if metric.endswith(PER_1000) else [metric]


def left_out(counts: Counts, windows: pd.DataFrame) -> pd.DataFrame:
    """The events that stand in no ratio for the leads, each with its status and the reason that was given most."""
    good: set[str] = set()  # that stand in one
    parts = []
    for part, own in beside(counts, windows):
        leads = own.loc[own["role"] == "lead", _WINDOW].drop_duplicates()
        rows = part[part["phase"] == ""].merge(leads, on=_WINDOW)
        usable = _usable(rows)
        good |= set(usable.loc[usable["value"] > 0, "event"])
        parts.append(rows.loc[~rows["event"].isin(good), ["event", "status", "note", "value", "running"]])
    if not parts:
        return frame([], LEFT_OUT)
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[~rows["event"].isin(good)]
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
    for name in _names(events):
        if _is_per_unit(name):
            yield name, both[name] / both["seconds"] / both["rate"]
        elif name == IPC:
            yield name, both[INSTRUCTIONS] / both[CYCLES]
        else:
            yield name, 1000 * both[_events_of(name)[0]] / both[INSTRUCTIONS]


def _names(events: Sequence[str]) -> list[str]:
    """The metrics that can be made of these events, in the order in which they are shown."""
    if INSTRUCTIONS not in events:
        return list(events)
    per_1000 = [f"{event} {PER_1000}" for event in events if event.endswith("misses")]
    return [*events, *([IPC] if CYCLES in events else []), *per_1000]


def _is_per_unit(metric: str) -> bool:
    return metric != IPC and not metric.endswith(PER_1000)


def _short(group: pd.DataFrame) -> str:
    return f"counted for {group['running'].mean():.0%} of the member's time, where {FULLY_COUNTED:.0%} are needed"
