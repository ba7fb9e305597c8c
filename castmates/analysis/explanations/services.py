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
from itertools import chain, takewhile
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order
from castmates.analysis.effects.contrasts import WITHOUT_PARTITION, mix_contrasts, possibly_biased
from castmates.analysis.effects.system import ALONE
from castmates.analysis.explanations.evolution import (
    COLUMNS,
    PLACE,
    QUANTILES,
    Launches,
    fewest_steps,
    launch_quantiles,
)
from castmates.analysis.explanations.phases import STEP, SUFFIX, is_outermost, phases_of
from castmates.analysis.keys import LAUNCH, MEMBER, MIX, ROW
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio
from castmates.analysis.statistics.pairs import are_planned, planned
from castmates.results.columns.services import LOADS, SERVICES
from castmates.results.columns.study import LATENCY, frame
from castmates.study.class_names import workload_of
from castmates.study.scenes import load_of, same_service, service_members
from castmates.study.spec import UNMANAGED, Member, Plan

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


# Quantiles of the steps of each launch -> p50, p95 and p99 of each member and scene, with intervals over launches.
#
# Steps of a launch are not independent, so that a launch gives one value of each quantile and Student's t goes over
# launches. A quantile that a launch has too few steps for is left out, with a sentence in the number's place.

MOST_FEW = 0.1  # share of launches with too few steps, above which the others are not a fair sample
MOST_ODD = 0.01  # share of steps that cover another number of units than the others
_LONG = [*ROW, "quantile"]
_LEFT = [f"left {share}" for share in QUANTILES.values()]
_NAMES = {str(share): name for name, share in QUANTILES.items()}
_ORDER = ["alone", "placebo", "antagonist-alone", "corun"]
_NO_BEATS = pd.DataFrame({name: [] for name in COLUMNS})


def conditions(plan: Plan) -> pd.DataFrame:
    """Which scene of a cohort is which row of the table, and which scene is its baseline there."""
    contrasts = mix_contrasts(plan)
    scenes = contrasts[contrasts["baseline"] == ALONE].assign(kind="corun")
    scenes.loc[scenes["antagonists"] == "", "kind"] = "alone"
    bases = contrasts[contrasts["baseline"] != WITHOUT_PARTITION].assign(scene=contrasts["baseline_scene"], mix="")
    bases = bases.assign(
        kind=bases["baseline_scene"].str.extract("^([a-z-]+)", expand=False),
        partition=bases["partition"].where(bases["baseline"].str.contains("@"), UNMANAGED),
        # A placebo is compared with alone too.
        baseline_scene=np.where(bases["role"] == "lead", "alone", bases["baseline_scene"]),
    )
    table = pd.concat([bases, scenes], ignore_index=True)
    table = table.drop_duplicates([*MEMBER, *MIX])
    under = np.where(table["partition"] == UNMANAGED, "", "@" + table["partition"])
    label = table["scene"].where(table["kind"] != "corun", "corun:" + table["mix"] + under)
    table = table.assign(label=label, baseline=ALONE)
    table.loc[table["scene"] == table["baseline_scene"], "baseline"] = ""
    table["row"] = table.groupby(["member", "label", "mix"], sort=False).ngroup()
    return table[["row", *MEMBER, "baseline_scene", "role", "kind", "label", *MIX, "baseline"]]


def latencies(plan: Plan, windows: pd.DataFrame, steps: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """A row per member, scene, quantile and platform; `steps` are the heartbeats of whole launches, some at a time.

    Of an open-loop service they are quantiles of its requests, and not of its steps. What reports phases has them of
    each outermost phase too.
    """
    known = conditions(plan)
    own = planned(windows, plan)
    is_service = own["member"].isin(list(service_members(plan)))
    launches, shares = Launches.of(own[~is_service]), list(QUANTILES.values())
    quantiles: dict[str, list[pd.DataFrame]] = {STEP: []}
    for part in chain([_NO_BEATS], steps):
        quantiles[STEP].append(launch_quantiles(part, launches, shares))
        for name in filter(is_outermost, phases_of(part)):
            inside = launch_quantiles(part, launches, shares, f"{name}{SUFFIX}")
            quantiles.setdefault(f"{name} phase", []).append(inside)
    found = {what: places_with_quantiles(launches, each) for what, each in quantiles.items()}
    for what in set(found) - {STEP}:  # who has no such phase has no row of it
        found[what] = found[what][found[what].groupby("member")["steps"].transform("sum") > 0]
    if is_service.any():
        found["request"] = request_quantiles(own[is_service])
    values = {what: each.merge(known, on=MEMBER) for what, each in found.items()}
    values = {what: each for what, each in values.items() if len(each)}
    if not values:  # nothing is valid of what has a row
        return frame([], LATENCY)
    table = pd.concat([_table(each).assign(what=what) for what, each in values.items()], ignore_index=True)
    every = pd.concat(values.values(), ignore_index=True).merge(possibly_biased(own, known), on=ROW)
    return _finished(plan, table, every, own)


def places_with_quantiles(launches: Launches, quantiles: list[pd.DataFrame]) -> pd.DataFrame:
    """The places of all launches with their rows of `launch_quantiles`; no steps where it has none."""
    every = pd.concat([part for part in quantiles if len(part)] or quantiles, ignore_index=True)
    return launches.table.join(every.set_index("group")).fillna({"steps": 0, "odd": 0})


def _table(values: pd.DataFrame) -> pd.DataFrame:
    """The numbers of each row, or why there are none."""
    values = values.assign(**{name: values[name].fillna(0.0) if name in values else 0.0 for name in _LEFT})
    kept = [*PLACE, "row", "baseline_scene", "steps", "odd", "units"]
    long = values.melt(id_vars=kept, value_vars=list(_NAMES), var_name="quantile")
    long["left"] = values.melt(id_vars=kept, value_vars=_LEFT)["value"].astype(float)
    long["quantile"] = long["quantile"].map(_NAMES)
    long["needed"] = long["quantile"].map({name: fewest_steps(share) for name, share in QUANTILES.items()})
    long["left"] = long["left"] > 0  # the windows with a quantile are the quick ones
    long["enough"] = (long["steps"] >= long["needed"]) & ~long["left"]
    counts = _counts(long)
    refused = _refused(counts)
    usable = long[long["enough"]].merge(refused[refused == ""].reset_index()[_LONG], on=_LONG)
    usable = usable.assign(difference=np.log(usable["value"].to_numpy(dtype=float)))
    absolute, relative = estimate(usable, by=_LONG), estimate(_against_baseline(usable), by=_LONG)
    columns = columns_of(absolute, "ms", ratio) | columns_of(relative, "ratio", ratio)
    table = counts.assign(refused=refused, **columns)
    table["launches_paired"] = relative["launches"]
    table["units"] = table["units"].where(table["sizes"] <= 1)
    return table.reset_index()


def _counts(long: pd.DataFrame) -> pd.DataFrame:
    """How many launches and steps there are behind each number."""
    enough = long.assign(few=~long["enough"], own=long["steps"].where(long["enough"], 0))
    enough["sized"] = long["units"].where(long["enough"])
    return enough.groupby(_LONG, observed=True).agg(
        launches=("enough", "sum"), launches_few=("few", "sum"), steps=("own", "sum"), every=("steps", "sum"),
        odd=("odd", "sum"), most=("steps", "max"), units=("units", "median"), steps_needed=("needed", "first"),
        sizes=("sized", "nunique"), left=("left", "sum"),
    )  # fmt: skip


def _refused(counts: pd.DataFrame) -> pd.Series:
    """Why a quantile is no number, or ""."""
    name = pd.Series(counts.index.get_level_values("quantile").astype(str), index=counts.index)
    needed, most = counts["steps_needed"].astype(str), counts["most"].astype("int64").astype(str)
    launches = counts["launches"] + counts["launches_few"]
    reasons = {
        "so many requests were unanswered when slices ended that it is not known": counts["left"] > MOST_FEW * launches,
        "no step lies wholly within a valid window": counts["every"] + counts["odd"] == 0,
        "heartbeats cover different numbers of units, so that one step cannot be timed": (
            counts["odd"] > MOST_ODD * (counts["every"] + counts["odd"])
        ),
        "steps cover different numbers of units in different launches, so that launches have no common step": (
            counts["sizes"] > 1
        ),
    }
    reason = np.select(list(reasons.values()), list(reasons), default="")
    few = name + " needs " + needed + " steps in a launch; the most that one has is " + most
    some = name + " needs " + needed + " steps in a launch; " + counts["launches_few"].astype(str) + " of "
    some += launches.astype(str) + " have fewer"
    lacking = np.where(counts["launches_few"] > MOST_FEW * launches, some, "")
    return pd.Series(
        np.where(reason != "", reason, np.where(counts["launches"] == 0, few, lacking)), index=counts.index
    )


def _against_baseline(values: pd.DataFrame) -> pd.DataFrame:
    """The log-ratio of each launch's quantile over that of the baseline in the same launch."""
    place = ["platform", *LAUNCH, "member", "quantile"]
    base = values[[*place, "scene", "units", "difference"]].drop_duplicates([*place, "scene"])
    # Steps of another size than the baseline's are not compared with them.
    both = values[values["scene"] != values["baseline_scene"]].merge(
        base.rename(columns={"scene": "baseline_scene"}),
        on=[*place, "units", "baseline_scene"],
        suffixes=("", "_baseline"),
    )
    return both.assign(difference=both["difference"] - both["difference_baseline"])


def _finished(plan: Plan, table: pd.DataFrame, values: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    about = values.drop_duplicates("row")[["row", "member", "role", "kind", "label", "mix", "partition", "baseline"]]
    flags = values.drop_duplicates(ROW)[[*ROW, "possibly_biased"]]
    unit = windows.drop_duplicates("member").set_index("member")["unit"]
    table = table.merge(about, on="row").merge(flags, on=ROW).rename(columns={"label": "scene"})
    table = table.assign(
        workload=table["member"].map(workload_of),
        unit=table["member"].map(unit),
        launches_paired=table["launches_paired"].fillna(0),
    )
    leads_first = values.drop_duplicates("member").sort_values("role", ascending=False, kind="stable")["member"]
    ranks = {
        name: {word: place for place, word in enumerate(words)}
        for name, words in (("member", leads_first), ("kind", _ORDER), ("what", table["what"].unique()))
    }
    by = ["member", "kind", "row", "platform", "what", "quantile"]
    return declared(in_order(table, by, **ranks), LATENCY, plan)


def request_quantiles(windows: pd.DataFrame) -> pd.DataFrame:
    """The requests and quantiles in ms of every launch, scene and member, as `launch_quantiles` has those of steps.

    A quantile is the geometric mean over the launch's windows, as of effects. `left` is the share of these in which so
    many requests were unanswered that it is but a bound.
    """
    valid = windows[windows["valid"] & windows["offered"].notna()]
    columns = {str(share): 1000 * valid[f"{name}_s"] for name, share in QUANTILES.items()}
    logs = valid[PLACE].assign(**{name: np.log(column.where(column > 0)) for name, column in columns.items()})
    left = {f"left {share}": valid[f"{name}_s"].isna() for name, share in QUANTILES.items()}
    whole = logs.assign(steps=valid["requests"], **left)
    found = whole.groupby(PLACE, observed=True, sort=False).agg(
        {"steps": "sum", **dict.fromkeys(columns, "mean"), **dict.fromkeys(left, "mean")}
    )
    found[[*columns]] = np.exp(found[[*columns]])
    return found.reset_index().assign(odd=0, units=1.0)
