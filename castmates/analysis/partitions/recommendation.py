"""What is known of every partition of a mix -> the one lead mask that is advised for it, or why none is.

With a limit, it is the smallest lead mask under which the lead loses no more than the limit; without one, the knee. It
is advised only where the loss without a partition is shown to be larger, and the mask to give some of it back.

Many masks are looked at, and the one that looks best looks so partly by luck. So each kind of partition is walked from
its largest lead mask down, as long as the upper bound of the loss keeps the limit, and never past the first that does
not: the chance that the chosen mask loses more than the limit is that of one wrong step, however many masks there are.
Several kinds of partition share that chance, each in proportion to its masks. The estimate of the chosen mask stays
biased; only fresh launches show it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.system import launch_slowdowns, mean_metrics, of_system
from castmates.analysis.effects.verdicts import GAIN, LOSS, TOO_FEW, UNCLEAR
from castmates.analysis.keys import LAUNCH, MIX
from castmates.analysis.partitions.sensitivity import KEPT
from castmates.analysis.statistics.intervals import CONFIDENCE, Floats, quantile
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.partitions import PARETO, RECOMMENDATIONS
from castmates.results.columns.study import frame
from castmates.study.capabilities import PARTITIONS
from castmates.study.node_classes import cache_of
from castmates.study.partitions.partitions import curve_names
from castmates.study.spec import UNMANAGED, Design, Mix, Plan

MET, NOT_MET, NO_SWEEP = "met", "not met", "no sweep"
KNEE, NOT_NEEDED, OPEN = "knee", "not needed", "loss not proven"
ADVISED = (MET, KNEE)  # with a mask to confirm
LIMIT = "limit"  # the other aim is KNEE
YES, EXCEEDED, NOT_YET = "confirmed", "exceeded", "not confirmed yet"
WRONG = (1 - CONFIDENCE) / 2  # the chance that a mask is recommended which loses more than the limit

_MIX = ["study", "mix", "lead", "antagonists", "platform", "machine"]
_PLACE = ["mix", "platform", "machine"]
_OF_PAIR = [*_MIX, "limit_pct", "verdict", "cache_ways", "aim", "without_pct", "without_low", "without_high"]
_VALUES = [f"{name}{end}" for name in ("loss", "kept") for end in ("_pct", "_low", "_high")]
_VALUES += ["stp", "stp_low", "stp_high"]


def advice(
    plan: Plan, pareto: pd.DataFrame, knees: pd.DataFrame, effects: pd.DataFrame, limit_pct: float | None = None
) -> pd.DataFrame:
    """What is advised for a limit or, without one, at the knees; nothing where no partition was asked for."""
    if not PARTITIONS.asked(plan):
        return frame([], RECOMMENDATIONS)
    table = worthwhile(recommendations(pareto, limit_pct, knees if limit_pct is None else None), effects)
    ways = [cache.ways if (cache := cache_of(plan, name)) else None for name in table["machine"]]
    return table.assign(cache_ways=pd.array(ways, dtype="Int64"))


def recommendations(pareto: pd.DataFrame, limit_pct: float | None, knees: pd.DataFrame | None = None) -> pd.DataFrame:
    """A row per mix and platform of a Pareto table; the ways of its cache are filled in by those who know it.

    Without a limit, the masks are those at the knees.
    """
    aim, limit_pct = (LIMIT, limit_pct) if limit_pct is not None else (KNEE, 100 - KEPT)
    searched = pareto[pareto["stage"] == SEARCH]
    if searched.empty:
        return frame([], RECOMMENDATIONS)
    mixes = searched[_MIX].drop_duplicates()
    candidates = bounded(searched[searched["lead_ways"].notna() & (searched["partition"] != UNMANAGED)])
    found = _choice(candidates, limit_pct) if knees is None else _at_knees(candidates, knees)
    chosen = _with_confirmation(found, pareto[pareto["stage"] == CONFIRMED], limit_pct)
    table = mixes.merge(chosen, on=_MIX, how="left")
    table["verdict"] = table["verdict"].fillna(NO_SWEEP)
    texts = {name: "" for name, kind in RECOMMENDATIONS.items() if kind == "str"}
    counts = {name: 0 for name, kind in RECOMMENDATIONS.items() if kind == "int64"}
    table = table.assign(limit_pct=limit_pct, aim=aim).reindex(columns=list(RECOMMENDATIONS))
    # A column of texts without any is one of numbers, which takes no text.
    whole = table.astype(dict.fromkeys(texts, "object")).fillna(texts | counts)
    return whole.astype(dict(RECOMMENDATIONS))


def worthwhile(advice: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """The advice as far as there is a loss to give back, with that loss, and how much faster the mask makes the lead.

    No mask is named where the loss without a partition keeps the limit, or is not proven to be beyond it.
    """
    leads = effects[effects["role"] == "lead"]
    bare = leads[(leads["baseline"] == "alone") & (leads["partition"] == UNMANAGED)].drop_duplicates(_PLACE)
    gains = leads[leads["baseline"] == UNMANAGED].drop_duplicates([*_PLACE, "partition"])
    loss = advice[_PLACE].merge(bare, on=_PLACE, how="left").set_index(advice.index)
    gain = advice[[*_PLACE, "partition"]].merge(gains, on=[*_PLACE, "partition"], how="left").set_index(advice.index)
    table = advice.assign(
        without_pct=loss["loss_pct"],
        without_low=loss["loss_low"],
        without_high=loss["loss_high"],
        faster=1 / gain["slowdown"],
        faster_low=1 / gain["slowdown_high"],
        faster_high=1 / gain["slowdown_low"],
    )
    beyond = (loss["verdict"] == LOSS) & (table["without_low"] > table["limit_pct"])
    kept = table["without_high"] <= table["limit_pct"]
    pays = beyond & (gain["verdict"] == GAIN)
    unproven = (table["verdict"] == NOT_MET) & ~beyond & table["without_low"].notna()
    unproven |= table["verdict"].isin(ADVISED) & ~pays
    words = np.select([kept, unproven], [NOT_NEEDED, OPEN], default=table["verdict"])
    silent = np.isin(words, [NOT_NEEDED, OPEN])
    of_mask = {name: kind for name, kind in RECOMMENDATIONS.items() if name not in _OF_PAIR}
    empty = {name: table[name].mask(silent, {"str": "", "int64": 0}.get(kind)) for name, kind in of_mask.items()}
    return table.assign(**empty, verdict=words).astype(dict(RECOMMENDATIONS))


def bounded(candidates: pd.DataFrame) -> pd.DataFrame:
    """The candidates with their kind, and the upper bound of the loss at the confidence that their kind has to have."""
    groups = candidates.groupby(_MIX, observed=True)
    table = candidates.assign(masks=groups["partition"].transform("size"), kinds=groups["curve"].transform("nunique"))
    of_kind = table.groupby([*_MIX, "curve"], observed=True)["partition"].transform("size")
    confidence = 1 - WRONG * (of_kind / table["masks"]).to_numpy(dtype=float)
    return table.assign(confidence=confidence, bound_pct=_bound(table, confidence))


def _bound(table: pd.DataFrame, confidence: Floats) -> Floats:
    """From the upper end of the two-sided interval, which is the bound where there is one kind of partition only."""
    log, high = (-np.log1p(-table[name].to_numpy(dtype=float) / 100) for name in ("loss_pct", "loss_high"))
    freedom = np.where(np.isnan(high), np.nan, table["freedom"].to_numpy(dtype=float))
    wider = quantile(freedom, confidence) / quantile(freedom)
    return np.asarray(-100 * np.expm1(-(log + (high - log) * wider)), dtype=float)


def _choice(candidates: pd.DataFrame, limit_pct: float) -> pd.DataFrame:
    """The chosen candidate of each mix; where none keeps the limit that of those beyond it with the lowest bound."""
    known = candidates[candidates["bound_pct"].notna()]
    down = known.sort_values("lead_ways", ascending=False, kind="stable")
    keeps = (down["bound_pct"] <= limit_pct).groupby([down[name] for name in [*_MIX, "curve"]], observed=True).cummin()
    met = _first(down[keeps.astype(bool)], ["lead_ways", "stp"], [True, False]).assign(verdict=MET)
    beyond = down[down["bound_pct"] > limit_pct]  # a smaller mask may keep it, though a larger one does not
    beyond = beyond.assign(larger_beyond=beyond.groupby([*_MIX, "curve"], observed=True).cumcount())
    nearest = _first(beyond, ["bound_pct", "lead_ways"], [True, True]).assign(verdict=NOT_MET)
    few = _first(candidates, ["loss_pct", "lead_ways"], [True, True]).assign(verdict=TOO_FEW)
    return pd.concat([met, nearest, few], ignore_index=True).drop_duplicates(_MIX)


def _at_knees(candidates: pd.DataFrame, knees: pd.DataFrame) -> pd.DataFrame:
    """The mask at the knee of each mix, the fewest ways of several kinds; where no kind has one what loses least."""
    known = candidates[candidates["bound_pct"].notna()]
    named = knees[[*_MIX, "curve", "knee"]]
    known = known.merge(named, on=[*_MIX, "curve"], how="left")
    at = known[(known["lead_ways"] == known["knee"]).fillna(value=False)]
    met = _first(at, ["lead_ways", "stp"], [True, False]).assign(verdict=KNEE)
    nearest = _first(known, ["loss_pct", "lead_ways"], [True, True]).assign(verdict=NOT_MET)
    few = _first(candidates, ["loss_pct", "lead_ways"], [True, True]).assign(verdict=TOO_FEW)
    return pd.concat([met, nearest, few], ignore_index=True).drop_duplicates(_MIX)


def _first(rows: pd.DataFrame, by: Sequence[str], ascending: Sequence[bool]) -> pd.DataFrame:
    return rows.sort_values(list(by), ascending=list(ascending), kind="stable").drop_duplicates(_MIX)


def _with_confirmation(chosen: pd.DataFrame, confirmed: pd.DataFrame, limit_pct: float) -> pd.DataFrame:
    """What fresh launches show of the chosen masks: one question, asked before they were measured, no adjustment."""
    key = ["mix", "partition", "platform"]
    confirmed = confirmed.assign(studies=confirmed.groupby(key, observed=True)["source"].transform("nunique"))
    most = confirmed.sort_values("launches", ascending=False, kind="stable").drop_duplicates(key)
    copied = [*_VALUES, "launches", "studies", "design"]
    most = most.rename(columns={"source": "confirmed_in"} | {name: f"confirmed_{name}" for name in copied})
    columns = ["confirmed_in", *(f"confirmed_{name}" for name in copied)]
    table = chosen.merge(most[[*key, *columns]], on=key, how="left")
    low, high = table["confirmed_loss_low"], table["confirmed_loss_high"]
    words = np.select(
        [
            ~table["verdict"].isin(ADVISED),
            table["confirmed_in"].isna(),
            high.isna(),
            high <= limit_pct,
            low > limit_pct,
        ],
        ["", NOT_YET, TOO_FEW, YES, EXCEEDED],
        default=UNCLEAR,
    )
    return table.assign(confirmation=words)


# What a lead loses against what its antagonists keep, under every partition of a mix; which ones are not dominated.

SEARCH, CONFIRMED = "search", "confirmed"

_ROW = [*MIX, "platform"]
_LAUNCH = [*_ROW, *LAUNCH]


def pareto_table(plan: Plan, windows: pd.DataFrame, effects: pd.DataFrame, stage: str = SEARCH) -> pd.DataFrame:
    """A row per mix of several members, partition (none at all is one too) and platform, as far as it was measured."""
    rows = effects[
        (effects["role"] == "lead")
        & (effects["baseline"] == "alone")
        & (effects["antagonists"] != "")
        & effects["slowdown"].notna()
    ]
    if rows.empty:
        return frame([], PARETO)
    kept = members_together(plan, windows)
    table = rows.merge(kept, on=_ROW, how="left")
    bytes_of_way = (plan.cache.way_bytes if plan.cache else None) or np.nan
    table = table.assign(
        curve=table["partition"].map(curve_names(plan)),
        lead_bytes=table["lead_ways"].astype("float64") * bytes_of_way,
        stage=stage,
        source=plan.study,
        machine=plan.machine,
        refused=0,
        why_refused="",
        design="",
    )
    table["frontier"] = undominated(table)
    return declared(table, PARETO)


def pareto_with_confirmed(
    plan: Plan, windows: pd.DataFrame, effects: pd.DataFrame, confirmed: pd.DataFrame
) -> pd.DataFrame:
    """The same with the rows that fresh launches confirmed."""
    return pd.concat([pareto_table(plan, windows, effects), confirmed], ignore_index=True)


def members_together(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """What all members of a mix get done, and what its antagonists do, launch by launch, with intervals between them.

    A launch in which some member has no pair of windows shows nothing of them together and is left out.
    """
    contrasts = of_system(plan)
    if contrasts.empty:
        columns = ("stp", "stp_low", "stp_high", "kept_pct", "kept_low", "kept_high")
        return frame([], dict.fromkeys(_ROW, "str") | dict.fromkeys(columns, "float64"))
    members = contrasts.drop_duplicates("row")[[*MIX, "member", "role"]]
    logs = launch_slowdowns(planned(windows, plan), contrasts).merge(members, on=[*MIX, "member"])
    logs["progress"] = 1 / logs["slowdown"]
    logs["of_others"] = logs["progress"].where(logs["role"] == "antagonist")
    launches = logs.groupby(_LAUNCH, observed=True).agg(
        members=("member", "size"), stp=("progress", "sum"), kept=("of_others", "mean")
    )
    wanted = members.groupby(MIX, observed=True).size().rename("wanted")
    whole = launches.join(wanted, on=MIX).query("members == wanted")
    values = mean_metrics(whole[["stp", "kept"]], _ROW)
    return _values(values, "stp", 1.0).merge(_values(values, "kept", 100.0, "_pct"), on=_ROW)


def _values(values: pd.DataFrame, name: str, unit: float, suffix: str = "") -> pd.DataFrame:
    rows = values[values["metric"] == name]
    columns = {f"{name}{suffix}": "value", f"{name}_low": "low", f"{name}_high": "high"}
    return rows[_ROW].assign(**{column: unit * rows[own] for column, own in columns.items()})


def undominated(table: pd.DataFrame) -> "pd.Series[bool]":
    """Whether no other partition of the same mix, stage and platform is as good in both and better in one."""
    known = table[table["kept_pct"].notna()]
    ordered = known.sort_values(["loss_pct", "kept_pct"], ascending=[True, False], kind="stable")
    best = ordered.groupby(["mix", "stage", "platform"], observed=True)["kept_pct"].cummax()
    before = best.groupby([ordered[name] for name in ("mix", "stage", "platform")], observed=True).shift()
    equal = ordered.duplicated(["mix", "stage", "platform", "loss_pct", "kept_pct"], keep="first")
    on_it = before.isna() | (ordered["kept_pct"] > before)
    twins = on_it.where(~equal).groupby([ordered[name] for name in ("mix", "stage", "platform")], observed=True).ffill()
    return twins.astype(bool).reindex(table.index, fill_value=False)


# Which launches of a confirming study count, and why the others do not.


@dataclass(frozen=True)
class Searched:
    """What the search was: the study that chose the partition, and where its launches were measured."""

    study: str
    mix: Mix  # under the partition
    platform: str
    seeds: Collection[int]
    hosts: Collection[str]


def refusal(record: Mapping[str, Any], searched: Searched) -> str:
    """Why this launch does not confirm what the search found; "" where it does."""
    spec = record.get("spec") or {}
    if spec.get("study") == searched.study or spec.get("seed") in searched.seeds:
        return "belongs to the search"
    if record.get("status") != "measured":
        return "failed"
    if (platform := record.get("platform")) != searched.platform:
        return f"is {platform}, not {searched.platform}"
    mixes = (spec.get("cohort") or {}).get("mixes") or ()
    if searched.mix.identity not in {mix.get("identity") for mix in mixes}:
        return _other_measurement(mixes, searched.mix)
    # What is modelled has its machine in the mix's identity, and no host.
    if searched.platform != "modelled" and (host := record.get("host")) not in searched.hosts:
        return f"was measured on another machine ({host})"
    return ""


def _other_measurement(mixes: Collection[Mapping[str, Any]], wanted: Mix) -> str:
    """What differs from the mix that the search chose."""
    same = [
        mix
        for mix in mixes
        if mix.get("lead") == wanted.lead and tuple(mix.get("antagonists") or ()) == wanted.antagonists
    ]
    shares = [partition.model_dump(mode="json")["shares"] for partition in wanted.partitions]
    tried = [partition.get("shares") for mix in same for partition in mix.get("partitions") or ()]
    if not same:
        return "has other programs or other CPUs"
    return "has other programs or another machine" if shares and shares[0] in tried else "has another partition"


def other_design(fresh: Iterable[Design], searched: Iterable[Design]) -> str:
    """How fresh launches were measured where it differs from the search: "4 rounds, not 3"; "" where nothing does."""
    ours, theirs, differences = list(fresh), list(searched), []
    for name, words in (("rounds", "{} rounds, not {}"), ("window", "windows of {} s, not {} s")):
        values = [sorted({getattr(design, name) for design in designs}) for designs in (ours, theirs)]
        if ours and values[0] != values[1]:
            differences.append(words.format(*(" or ".join(f"{value:g}" for value in several) for several in values)))
    return "; ".join(differences)
