"""Studies against a baseline -> what differs: a row per mix, member, baseline and partition of either of two.

And a row per study: the geometric mean of the leads' slowdowns over the pairs that all have. The pairs are fixed and no
sample of others: an interval covers what varies between launches, or sessions, of exactly these pairs. The mixes of one
cohort share their launches, so a launch gives one value, the mean over them; cohorts are independent of each other
within a session. A launch that lacks one of its pairs is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.comparison.launches import (
    LOGS,
    QUESTION,
    gifts,
    launch_means,
    matches,
    questions,
    side_of,
    spread,
    units,
)
from castmates.analysis.core import adjusted, declared, only_platform
from castmates.analysis.effects.verdicts import comparison_verdicts
from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import columns_of, holm, ratio
from castmates.analysis.statistics.welch import cohort_means, one_sample, summed, welch
from castmates.results.columns.comparison import COMPARISON, COMPARISON_MEANS, COMPARISON_THROUGHPUT
from castmates.results.columns.study import frame
from castmates.study.class_names import workload_of
from castmates.study.spec import UNMANAGED, Plan

BOTH, ONLY_A, ONLY_B = "both", "only in A", "only in B"
_WHERE = {"both": BOTH, "left_only": ONLY_A, "right_only": ONLY_B}
_COUNTS = ("launches", "rounds", "units", "sessions")


@dataclass(frozen=True)
class Side:
    """One study: its plan and its windows."""

    plan: Plan
    windows: pd.DataFrame


def compare(a: Side, b: Side, margin: float) -> pd.DataFrame:
    """Match the rows of both studies and compare their launches; what stands on one side only is a row too."""
    return against(a, {"B": b}, margin)["B"]


def against(baseline: Side, others: Mapping[str, Side], margin: float) -> dict[str, pd.DataFrame]:
    """Compare each of the others, by letter, with the baseline; p is adjusted over the rows of all of them."""
    tables = [_compared(baseline, other).assign(letter=letter) for letter, other in others.items()]
    every = _judged(pd.concat(tables, ignore_index=True), margin)
    return {letter: declared(every[every["letter"] == letter], COMPARISON) for letter in others}


def _compared(a: Side, b: Side) -> pd.DataFrame:
    matched = matches(gifts(a.plan), gifts(b.plan))
    table = _joined(_rows(a), _rows(b, {(match.mix, match.b): match.a for match in matched}))
    masks = {(match.mix, match.a): match.masks for match in matched}
    table["masks"] = [masks.get(key, "") for key in zip(table["mix"], table["partition"], strict=True)]
    table.loc[table["where"] != BOTH, "masks"] = ""
    return _estimated(table, units(a.windows), units(b.windows))


def _judged(table: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Adjust p over the rows of each role and baseline, those under partitions by themselves, and give the verdicts."""
    table["p_holm"] = adjusted(table, "platform_a", "role", "baseline", table["partition"] != UNMANAGED)
    table["verdict"] = comparison_verdicts(table, margin)
    return table


def _rows(side: Side, names: dict[tuple[str, str], str] | None = None) -> pd.DataFrame:
    """The study's questions with the answers of its launches; `partition` is A's name for it, `own` this study's."""
    asked = questions(side.plan)
    estimates = spread(launch_means(side.plan, side.windows), over_sessions=True).reset_index("platform")
    table = asked.join(estimates).reset_index(drop=True)
    counts = {name: table[name].fillna(0).astype("int64") for name in _COUNTS}
    platforms = table["platform"].fillna(only_platform(side.windows))
    table = table.assign(own=table["partition"], platform=platforms, **counts)
    if names is not None:
        called = zip(table["mix"], table["partition"], strict=True)
        table["partition"] = [names.get(key, key[1]) for key in called]
    return table


def _joined(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Rows of the same platform side by side; then what is left, platforms apart; then what only one study has."""
    key = [*QUESTION, "partition"]
    order = [tuple(row) for side in (a, b) for row in side[key].itertuples(index=False, name=None)]
    a, b = (_marked(side, key, letter) for side, letter in ((a, "a"), (b, "b")))
    same = a.merge(b, left_on=[*key, "platform_a"], right_on=[*key, "platform_b"])
    left, right = _without(a, same, [*key, "platform_a"]), _without(b, same, [*key, "platform_b"])
    rest = left.merge(right, on=key, how="outer", indicator=True)
    rest = rest.assign(where=rest["_merge"].astype("str").map(_WHERE))
    return _ordered(pd.concat([same.assign(where=BOTH), rest], ignore_index=True), order, key)


def _marked(side: pd.DataFrame, key: list[str], letter: str) -> pd.DataFrame:
    return side.rename(columns={name: f"{name}_{letter}" for name in side.columns if name not in key})


def _without(side: pd.DataFrame, taken: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    index = pd.MultiIndex.from_frame(side[key])
    return side[~index.isin(pd.MultiIndex.from_frame(taken[key]))]


def _ordered(table: pd.DataFrame, order: list[tuple[object, ...]], key: list[str]) -> pd.DataFrame:
    """In the order of A's plan, then of B's."""
    place: dict[tuple[object, ...], int] = {}
    for row in order:
        place.setdefault(row, len(place))
    at = [place[row] for row in table[key].itertuples(index=False, name=None)]
    return table.iloc[np.argsort(at, kind="stable")].reset_index(drop=True)


def _estimated(table: pd.DataFrame, units_a: dict[str, str], units_b: dict[str, str]) -> pd.DataFrame:
    table = table.assign(**{f"{name}_{side}": table[f"{name}_{side}"].fillna(0) for name in _COUNTS for side in "ab"})
    table = table.assign(**{f"platform_{side}": table[f"platform_{side}"].fillna("") for side in "ab"})
    sides = {side: {name: side_of(table, name, f"_{side}") for name in LOGS} for side in "ab"}
    # What was measured and what was not are never put into one interval.
    comparable = (table["where"] == BOTH) & (table["platform_a"] == table["platform_b"])
    difference = welch(sides["a"]["loss"], sides["b"]["loss"])
    table = table.assign(**{str(name): values.where(comparable) for name, values in difference.items()})
    columns = columns_of(table, "ratio", ratio)
    for side in "ab":
        columns |= columns_of(one_sample(sides[side]["loss"]), f"slowdown_{side}", ratio)
        columns[f"partition_{side}"] = table[f"own_{side}"].fillna("")
        columns[f"baseline_rate_{side}"] = ratio(sides[side]["baseline"]["mean"])
    columns["unit"] = _unit(table, units_a, units_b)
    counted_alike = comparable & (columns["unit"] != "")
    for name in ("baseline", "scene"):
        rates = welch(sides["a"][name], sides["b"][name])
        columns |= columns_of(rates.where(counted_alike), f"{name}_rate_ratio", ratio)
    return table.assign(**columns)


def _unit(table: pd.DataFrame, a: dict[str, str], b: dict[str, str]) -> pd.Series:
    """What both studies count progress in; "" where they do not agree."""
    workloads = table["member"].str.partition("#")[0]
    ours, theirs = workloads.map(a), workloads.map(b)
    known = ours.fillna(theirs).fillna("")
    return known.where(ours.isna() | theirs.isna() | (ours == theirs), "")


def geometric_means(studies: Mapping[str, Side], margin: float) -> pd.DataFrame:
    """A row per study, the baseline first; p is adjusted over the other studies.

    Empty where the studies have no pair in common. A study with numbers of several platforms has no mean.
    """
    losses = pd.concat({letter: _losses(side) for letter, side in studies.items()}, names=["letter"]).reset_index()
    known = losses.groupby("mix")["letter"].nunique()
    pairs = known.index[known == len(studies)]
    if pairs.empty:
        return frame([], COMPARISON_MEANS)
    shared = losses[losses["mix"].isin(pairs)]
    platforms = shared.groupby("letter")["platform"].unique().map(lambda names: names[0] if len(names) == 1 else "")
    parts = cohort_means(shared[shared["letter"].map(platforms) != ""], ["letter"])
    own = summed(parts, ["letter"]).reindex(list(studies))
    first = next(iter(studies))
    table = pd.DataFrame({"letter": list(studies), "platform": [platforms[letter] for letter in studies]})
    table = table.assign(pairs=len(pairs), launches=own["launches"].fillna(0).to_numpy())
    table = table.assign(**columns_of(own.reset_index(drop=True), "slowdown", ratio))
    return _means_judged(table, _differences(parts, first, list(studies)[1:]), margin)


def difference_of_means(first: pd.DataFrame, second: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """`second` minus `first`, group by group, from the cohorts' parts of both."""
    return summed(pd.concat([second, first.assign(mean=-first["mean"])]), by)


def _losses(side: Side) -> pd.DataFrame:
    """What each launch shows of each lead beside its antagonists against alone, without a partition."""
    asked = questions(side.plan)
    wanted = (asked["role"] == "lead") & (asked["baseline"] == "alone") & (asked["partition"] == UNMANAGED)
    pairs = asked.loc[wanted & (asked["antagonists"] != ""), ["mix"]]
    launches = launch_means(side.plan, side.windows).reset_index()
    return launches.merge(pairs, left_on="row", right_index=True)[["mix", "platform", *LAUNCH, "session", "loss"]]


def _differences(
    parts: pd.DataFrame, first: str, others: Sequence[str], by: Sequence[str] = ("letter",)
) -> pd.DataFrame:
    """Each other study's mean minus the baseline's, by letter and what else parts are kept apart by."""
    by_letter = parts.reset_index()
    ours = by_letter[by_letter["letter"] == first]
    repeated = pd.concat([ours.iloc[:0], *(ours.assign(letter=letter) for letter in others)])
    theirs = by_letter[by_letter["letter"].isin(others)]
    return difference_of_means(repeated, theirs, list(by))


def _means_judged(table: pd.DataFrame, differences: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Ratios to the baseline's mean, and their verdicts; none across platforms."""
    baseline = table.iloc[0]
    compared = (table.index > 0) & (table["platform"] == baseline["platform"]) & (table["platform"] != "")
    logs = differences.reindex(table["letter"]).set_axis(table.index)
    table = table.assign(**{name: logs[name].where(compared) for name in ("mean", "low", "high", "p_value")})
    table = table.assign(**columns_of(table, "ratio", ratio))
    table["p_holm"] = holm(table["p_value"])
    sides = {"where": BOTH, "platform_a": baseline["platform"], "platform_b": table["platform"]}
    # The number of launches of all cohorts does not show whether each has enough for an interval.
    counted = table["launches"].where(table["slowdown_low"].notna(), table["launches"].clip(upper=1))
    counts = {"launches_a": counted.iloc[0], "launches_b": counted}
    words = pd.Series(comparison_verdicts(table.assign(**sides, **counts), margin), index=table.index)
    table["verdict"] = words.where(table.index > 0, "baseline")
    return declared(table, COMPARISON_MEANS)


# Work per second of machine A against B over one list of mixes: how much everybody gets done beside the others. Losses
# are ratios within a study; this is what machines are bought by. Rates of different units are compared, never added up.

LIST = ""  # the workload of the rows that stand for all of them


def throughput(studies: Mapping[str, Side]) -> pd.DataFrame:
    """A row per study and workload beside others, and one for the whole list: rates, and their ratio to the baseline's.

    Each place in a mix that all studies have weighs the same. Empty where they have none in common.
    """
    rates = pd.concat({letter: _rates(side) for letter, side in studies.items()}, names=["letter"]).reset_index()
    known = rates.groupby(["mix", "member"])[["letter", "unit"]].nunique()
    places = known.index[(known["letter"] == len(studies)) & (known["unit"] == 1)]
    rates = rates[pd.MultiIndex.from_frame(rates[["mix", "member"]]).isin(places)]
    if rates.empty:
        return frame([], COMPARISON_THROUGHPUT)
    rates = pd.concat([rates.assign(workload=LIST, unit=""), rates], ignore_index=True)
    by = ["workload", "letter"]
    counts = rates.groupby("workload", sort=False).agg(
        unit=("unit", "first"), mixes=("mix", "nunique"), places=("place", "nunique")
    )
    platforms = rates.groupby("letter")["platform"].unique().map(lambda names: names[0] if len(names) == 1 else "")
    whole = rates[rates["letter"].map(platforms) != ""]
    parts = cohort_means(whole.assign(mix=whole["place"], loss=whole["scene"]), by)
    first = next(iter(studies))
    same = [letter for letter in studies if platforms[letter] == platforms[first] != ""]
    table = pd.DataFrame([(name, letter) for name in counts.index for letter in studies], columns=by)
    table = table.join(counts, on="workload").assign(platform=table["letter"].map(platforms))
    key = pd.MultiIndex.from_frame(table[by])
    own = summed(parts, by).reindex(key).reset_index(drop=True)
    own.loc[table["workload"] == LIST, ["mean", "low", "high"]] = np.nan
    table = table.assign(launches=own["launches"].fillna(0), **columns_of(own, "rate", ratio))
    against_first = _differences(parts, first, same[1:], by).reindex(key).reset_index(drop=True)
    return declared(table.assign(**columns_of(against_first, "ratio", ratio)), COMPARISON_THROUGHPUT)


def _rates(side: Side) -> pd.DataFrame:
    """What each launch shows of each member's rate beside the others, without a partition."""
    asked = questions(side.plan)
    wanted = (asked["baseline"] == "alone") & (asked["partition"] == UNMANAGED) & (asked["antagonists"] != "")
    launches = launch_means(side.plan, side.windows).reset_index()
    table = launches.merge(asked.loc[wanted, ["mix", "member"]], left_on="row", right_index=True)
    workloads = table["member"].str.partition("#")[0]
    services = {workload_of(one.name) for cohort in side.plan.cohorts for one in cohort.members if one.requests}
    table = table.assign(
        workload=workloads, unit=workloads.map(units(side.windows)), place=table["mix"] + "/" + table["member"]
    )
    return table[~workloads.isin(services)][
        ["mix", "member", "place", "workload", "unit", "platform", *LAUNCH, "session", "scene"]
    ]
