"""What a lead loses against what its antagonists keep, under every partition of a mix; which ones are not dominated."""

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.system import launch_slowdowns, mean_metrics, of_system
from castmates.analysis.keys import LAUNCH, MIX
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.partitions import PARETO
from castmates.results.columns.study import frame
from castmates.study.partitions.planned import curve_names
from castmates.study.spec import Plan

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
