"""Plan and windows -> the table of mitigations: what each gives back to the lead, and what it costs the others.

Everything is compared inside a round of a launch. Of several masks the best is chosen on two fifths of the launches,
and the others estimate, as with the isolating partition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.core import adjusted, declared, of_each_launch, only_platform
from castmates.analysis.effects.contrasts import partitions_of
from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.keys import LAUNCH, LEAD_OF_MIX, ROW
from castmates.analysis.partitions.attribution_parts import CHOSEN, ONLY, best_of, choosing
from castmates.analysis.statistics.intervals import estimate, gained, lost
from castmates.analysis.statistics.pairs import log_rates, planned, whole_alone
from castmates.results.columns.study import MITIGATIONS, frame
from castmates.study.class_names import workload_of
from castmates.study.mitigations import with_place
from castmates.study.scenes import under
from castmates.study.spec import UNMANAGED, Cohort, Mitigation, Mix, Plan

NOTHING = "unmanaged"  # the kind of the row to which all others are compared
QUANTITIES = ("loss", "gain", "others_loss", "cost")  # logarithms, by round
_ROUND = ["platform", "launch", "round"]
APART = (
    "it was never measured in the same launch as the mix itself "
    "(raise 'budget.mixes_per_launch' or 'budget.longest_launch')"
)
TOO_FEW = "too few launches to choose a mask on some and estimate it on others: it takes five"
NO_DATA = "not measured yet"


@dataclass(frozen=True)
class _Arm:
    """A mix under a partition."""

    mix: Mix
    partition: str

    def scene_in(self, cohort: Cohort) -> str | None:
        """The scene that is this arm; None where the cohort has none."""
        name = next((mix.name for mix in cohort.mixes if _members(mix) == _members(self.mix)), None)
        scene = under(f"corun:{name}", self.partition)
        return scene if any(each.name == scene for each in cohort.scenes) else None


@dataclass(frozen=True)
class _Row:
    """One mitigation of a mix."""

    tried: Mitigation
    kind: str
    mix: Mix
    arms: Sequence[_Arm]


def estimate_mitigations(plan: Plan, windows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A row per mix, mitigation and platform; first of each mix the row of nothing done."""
    rows = list(_rows(plan))
    if not rows:
        return frame([], MITIGATIONS)
    own = planned(windows, plan)
    rounds = _rounds(rows, plan, whole_alone(log_rates(own)))
    found, how = _chosen(rows, rounds, plan)
    table = pd.DataFrame({"row": range(len(rows))}).merge(how, on="row", how="left")
    for quantity in QUANTITIES:
        known = found.assign(difference=found[quantity]).dropna(subset="difference")
        table = table.merge(_estimated(known, quantity), on=ROW, how="left")
    table["platform"] = table["platform"].fillna(only_platform(own))
    return _columns(table, rows, plan, margin)


def _rows(plan: Plan) -> Iterator[_Row]:
    by_name = {(mix.name, part): mix for mix in plan.mixes for part in partitions_of(mix)}
    seen: set[str] = set()
    for tried in plan.mitigations:
        mix = by_name[tried.mix, UNMANAGED]
        if tried.mix not in seen:
            seen.add(tried.mix)
            nothing = tried.model_copy(update={"arms": ((tried.mix, UNMANAGED),), "reason": ""})
            yield _Row(nothing, NOTHING, mix, [_Arm(mix, UNMANAGED)])
        arms = [_Arm(by_name[name, part], part) for name, part in tried.arms if (name, part) in by_name]
        yield _Row(tried, tried.kind, mix, arms)


def _members(mix: Mix) -> tuple[str, ...]:
    return (mix.lead, *mix.antagonists)


def _rounds(rows: Sequence[_Row], plan: Plan, rates: pd.DataFrame) -> pd.DataFrame:
    """By row, arm and round the logarithms of what the lead loses and gains, and of what the others lose and pay."""
    tables = [pd.DataFrame(columns=["row", "partition", "cohort", *_ROUND, *QUANTITIES])]
    for cohort in plan.cohorts:
        # A line per round, and a column per scene and member.
        plain = rates[rates["cohort"] == cohort.id].astype({"scene": object, "member": object, "platform": object})
        wide = plain.pivot(index=_ROUND, columns=["scene", "member"], values="log_rate")
        for number, row in enumerate(rows):
            bare = _Arm(row.mix, UNMANAGED).scene_in(cohort)
            for arm in row.arms:
                scene = arm.scene_in(cohort)
                if bare and scene and not wide.empty:
                    values = _quantities(wide, row.mix, bare, arm.mix, scene)
                    tables.append(values.assign(row=number, partition=arm.partition, cohort=cohort.id).reset_index())
    found = [table for table in tables if not table.empty] or tables
    return pd.concat(found, ignore_index=True)


def _quantities(wide: pd.DataFrame, base: Mix, bare: str, mix: Mix, scene: str) -> pd.DataFrame:
    def rate(scene: str, member: str) -> pd.Series:
        place = (scene, member)
        return wide[place] if place in wide.columns else pd.Series(np.nan, index=wide.index)

    def lost(scene: str, members: Sequence[str]) -> pd.Series:
        losses = [rate(f"antagonist-alone:{member}", member) - rate(scene, member) for member in members]
        return sum(losses[1:], start=losses[0]) / len(losses)

    others = lost(scene, mix.antagonists)
    return pd.DataFrame(
        {
            "loss": rate("alone", base.lead) - rate(scene, base.lead),
            "gain": rate(scene, base.lead) - rate(bare, base.lead),
            "others_loss": others,
            "cost": others - lost(bare, base.antagonists),
        }
    )


def _chosen(rows: Sequence[_Row], rounds: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rounds that estimate; and by row and platform the partition, how it was found, and from how many."""
    several = [number for number, row in enumerate(rows) if len(row.arms) > 1]
    lone = rounds[~rounds["row"].isin(several)]
    how = lone[[*ROW, "partition"]].drop_duplicates().assign(how=ONLY, candidates=1, launches_choosing=0)
    parts, hows = [lone], [how]
    for number in several:
        own = rounds[rounds["row"] == number]
        of_mix = {"mix": rows[number].mix.name, "member": rows[number].mix.lead}
        known = pd.DataFrame([{**of_mix, "partition": arm.partition} for arm in rows[number].arms])
        gains = of_each_launch(own[own["gain"].notna()], ["platform", "partition"], ["gain"]).assign(**of_mix)
        if gains.empty:
            continue
        launches = choosing(gains, plan.launches)
        gains = gains.merge(launches, on=[*LEAD_OF_MIX, "platform", *LAUNCH])
        best = best_of(gains, known).assign(row=number, how=CHOSEN, candidates=len(known))
        hows.append(best[[*ROW, "partition", "how", "candidates", "launches_choosing"]])
        estimating = launches.loc[~launches["choosing"], ["platform", *LAUNCH]]
        parts.append(own.merge(best[["platform", "partition"]]).merge(estimating, on=["platform", *LAUNCH]))
    return pd.concat(parts, ignore_index=True), pd.concat(hows, ignore_index=True)


def _estimated(rounds: pd.DataFrame, quantity: str) -> pd.DataFrame:
    names = {"mean": quantity, "low": f"{quantity}_low", "high": f"{quantity}_high"}
    names |= {"launches": f"{quantity}_launches", "rounds": f"{quantity}_rounds", "p_value": f"{quantity}_p"}
    if rounds.empty:
        return pd.DataFrame(columns=[*ROW, *names.values()])
    table = estimate(rounds.astype({"row": "int64"}), by=ROW).rename(columns=names)
    return table[list(names.values())].reset_index()


def _columns(table: pd.DataFrame, rows: Sequence[_Row], plan: Plan, margin: float) -> pd.DataFrame:
    table = table.sort_values(["platform", "row"], kind="stable", ignore_index=True)
    own = [rows[number] for number in table["row"]]
    table = table.assign(
        mix=[row.mix.name for row in own],
        lead=[workload_of(row.mix.lead) for row in own],
        antagonists=[with_place("+".join(map(workload_of, row.mix.antagonists)), row.mix.name) for row in own],
        mitigation=[row.kind for row in own],
        launches=table["loss_launches"].fillna(0),
        rounds=table["loss_rounds"].fillna(0),
        reason=[_reason(row, launches, plan) for row, launches in zip(own, table["loss_launches"], strict=True)],
        **{name: table[name].astype("float64") for name in map(str, table) if name.startswith(QUANTITIES)},
    )
    for name, scale in (("loss", lost), ("others_loss", lost), ("gain", gained), ("cost", lost)):
        for end in ("", "_low", "_high"):
            table[f"{name}{end or '_pct'}"] = scale(table[f"{name}{end}"])
    nothing = table["mitigation"] == NOTHING
    table.loc[nothing, ["gain_pct", "gain_low", "gain_high", "gain_p", "cost_pct", "cost_low", "cost_high"]] = np.nan
    table["p_holm"] = adjusted(table, "platform", "mix", p="gain_p")
    gains = {"mean": "gain_pct", "low": "gain_high", "high": "gain_low"}
    signs = {name: -np.log1p(table[gain] / 100) for name, gain in gains.items()}
    words = effect_verdicts(table.assign(launches=table["gain_launches"].fillna(0), **signs), margin)
    table["verdict"] = np.where(nothing, "", words)
    table["p_value"] = table["gain_p"]
    table = table.fillna({"partition": "", "how": "", "candidates": 0, "launches_choosing": 0})
    table["candidates"] = [max(int(known), len(row.arms)) for known, row in zip(table["candidates"], own, strict=True)]
    table.loc[table["partition"] == UNMANAGED, "partition"] = ""
    return declared(table, MITIGATIONS, plan)


def _reason(row: _Row, launches: float, plan: Plan) -> str:
    """Why there is no number; "" where there is one."""
    if row.tried.reason or launches > 0:
        return row.tried.reason
    bare = _Arm(row.mix, UNMANAGED)
    if not any(bare.scene_in(cohort) and arm.scene_in(cohort) for cohort in plan.cohorts for arm in row.arms):
        return APART
    return TOO_FEW if len(row.arms) > 1 else NO_DATA
