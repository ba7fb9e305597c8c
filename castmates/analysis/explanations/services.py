"""Windows of open-loop services -> what was answered, and how late, at each load and beside each antagonist.

Every launch gives one value of a quantile, the geometric mean over its windows, so that Student's t goes over launches,
as for effects. Loads of one service are those of workloads whose commands differ in nothing but `--load`.

Of the loads that keep a limit on the latency the highest is named. The upper end of the latency's 95 % interval has to
keep the limit. Loads are tried from the lowest on, and the first that fails ends it: so a load whose true latency
exceeds the limit is named no more often than the upper end of one interval lies below the truth, however many loads
were tried. That is in 2.5 % of studies where the logarithms of launches are normal, and in up to 6 % of those of
simulated queues, whose slow launches differ more than quick ones.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.explanations.latency import conditions, latencies
from castmates.analysis.explanations.steps import QUANTILES
from castmates.analysis.keys import MEMBER, ROW
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio
from castmates.analysis.statistics.pairs import are_planned, planned
from castmates.results.columns.services import LOADS, SERVICES
from castmates.results.columns.study import frame
from castmates.study.class_names import workload_of
from castmates.study.services import load_of, same_service, service_members
from castmates.study.spec import Member, Plan

KEEPS_UP = 0.97  # share of the load that a service answers, at least, or it is saturated
INTERPOLATED = "interpolated"
_PLACE = ["service", "antagonists", "partition", "platform", "machine"]
_KINDS = ("alone", "corun")
Row = Mapping[Hashable, Any]


def services(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per service, scene and platform: its load, what it answered of it, and how late."""
    members = service_members(plan)
    own = planned(windows, plan)
    own = own[own["valid"] & own["member"].isin(members) & (own["offered"] > 0)]
    if own.empty:
        return frame([], SERVICES)
    known = own.merge(conditions(plan), on=MEMBER, suffixes=("_window", ""))
    answered = known.assign(difference=np.log(known["answered"].where(known["answered"] > 0) / known["offered"]))
    share = estimate(answered.dropna(subset=["difference"]), by=ROW)
    table = known.groupby(ROW, observed=True, sort=False).agg(
        dict.fromkeys(("member", "role", "kind", "label", "mix", "partition"), "first")
        | {"offered": "mean", "answered": "mean", "unanswered": "mean"}
    )
    table = table.assign(
        **columns_of(share, "answered_share", ratio, ends="share"), launches=share["launches"]
    ).reset_index()
    table = table.rename(columns={"label": "scene"}).assign(
        workload=table["member"].map(workload_of),
        load=[
            load_of(members[name]) or offered for name, offered in zip(table["member"], table["offered"], strict=True)
        ],
        service=table["member"].map(_names(members)),
        antagonists=table["mix"].str.partition("+")[2].where(table["kind"] == "corun", ""),
        saturated=table["answered_share"] < KEEPS_UP,
        launches=table["launches"].fillna(0),
    )
    table = table.merge(_wide(latencies(plan, own, [])), on=["member", "scene", "platform"], how="left")
    table = table.sort_values(["service", "platform", "partition", "antagonists", "load"], kind="stable")
    return declared(table, SERVICES, plan)


def without_saturated(parts: Iterable[Plan], windows: pd.DataFrame) -> pd.DataFrame:
    """The windows, in which a service that is saturated alone has no speed: there is nothing to compare others with.

    Whether it is so is judged in each part of the plan by itself, as everything else.
    """
    for part in parts:
        table = services(part, windows)
        alone = table.loc[
            table["saturated"] & table["kind"].isin(["alone", "antagonist-alone"]), ["member", "platform"]
        ]
        if alone.empty:
            continue
        mine = pd.MultiIndex.from_frame(windows[["member", "platform"]]).isin(pd.MultiIndex.from_frame(alone))
        mine &= are_planned(windows, part)
        windows = windows.assign(rate=windows["rate"].mask(mine), later=windows["later"].mask(mine))
    return windows


def _wide(latency: pd.DataFrame) -> pd.DataFrame:
    """The quantiles of a member and scene in one row."""
    place, values = ["member", "scene", "platform"], ["ms", "ms_low", "ms_high", "ratio", "ratio_low", "ratio_high"]
    wide = latency.drop_duplicates([*place, "quantile"]).pivot(index=place, columns="quantile", values=values)
    wide.columns = wide.columns.map(lambda name: f"{name[1]}_{name[0]}")
    return wide.reindex(columns=[f"{quantile}_{value}" for quantile in QUANTILES for value in values]).reset_index()


def _names(members: dict[str, Member]) -> dict[str, str]:
    """What each member's service is called: what the names of its workloads begin with, where only its own do.

    Else all of their names: one of them would be taken for the load that it has.
    """
    groups: dict[object, list[str]] = {}
    for name, member in members.items():
        groups.setdefault(same_service(member), []).append(name)
    workloads = [list(dict.fromkeys(map(workload_of, group))) for group in groups.values()]
    common = [_common(names) for names in workloads]
    found: dict[str, str] = {}
    for group, names, short in zip(groups.values(), workloads, common, strict=True):
        found |= dict.fromkeys(group, short if short and common.count(short) == 1 else "/".join(names))
    return found


def _common(names: Sequence[str]) -> str:
    """The words that these names begin with; "" where there are none."""
    if len(names) == 1:
        return names[0]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    short = "".join(letters[0] for letters in same).rstrip("-_.0123456789")
    return "" if any(name[len(short) : len(short) + 1].isalpha() for name in names) else short


def loads(services: pd.DataFrame, latency_limits: Mapping[str, float]) -> pd.DataFrame:
    """A row per service, antagonists, partition and limit; limits are in ms, by quantile."""
    leads = services[(services["role"] == "lead") & services["kind"].isin(_KINDS)]
    rows = [
        {"study": own["study"].iloc[0], "quantile": quantile, "limit_ms": limit}
        | dict(zip(_PLACE, place, strict=True))
        | _highest(own.sort_values("load").to_dict("records"), quantile, limit)
        for place, own in leads.groupby(_PLACE, sort=False)
        for quantile, limit in latency_limits.items()
    ]
    return frame(rows, LOADS)


def _highest(rows: list[dict[Hashable, Any]], quantile: str, limit: float) -> dict[str, object]:
    """What is found of one service beside one antagonist; rows are its loads from the lowest on."""
    high = f"{quantile}_ms_high"
    count = next((number for number, row in enumerate(rows) if not _keeps(row, high, limit)), len(rows))
    best, after = rows[count - 1] if count else None, rows[count] if count < len(rows) else None
    found: dict[str, object] = {
        "load": best["load"] if best else math.nan,
        "load_ms": best[f"{quantile}_ms"] if best else math.nan,
        "load_ms_high": best[high] if best else math.nan,
        "interpolated": math.nan,
        "next_load": after["load"] if after else math.nan,
        "next_ms_high": after[high] if after else math.nan,
        "next_saturated": bool(after and after["saturated"]),
        "source": "",
        "why": _why(best, after, high),
        "launches": int(best["launches"]) if best else 0,
    }
    if best and after and not after["saturated"] and after[high] > limit:
        found |= {"interpolated": _between(best, after, high, limit), "source": INTERPOLATED}
    return found


def _keeps(row: Row, high: str, limit: float) -> bool:
    return not row["saturated"] and row[high] <= limit  # NaN keeps nothing


def _between(best: Row, after: Row, high: str, limit: float) -> float:
    """Where a straight line between the two upper ends reaches the limit, all of it on scales of logarithms.

    Latencies bend upwards with the load, so that the line lies above them, and the load is rather too low.
    """
    share = math.log(limit / best[high]) / math.log(after[high] / best[high])
    return float(best["load"] * (after["load"] / best["load"]) ** share)


def _why(best: Row | None, after: Row | None, high: str) -> str:
    if after is None:
        return "every load that was measured keeps the limit"
    what = "the lowest load that was measured" if best is None else "the next higher one"
    if after["saturated"]:
        return f"{what} saturates the service"
    if math.isnan(after[high]):
        return f"{what} has no interval: it takes three launches, and enough requests that were answered"
    return f"{what} exceeds the limit" if best is None else ""
