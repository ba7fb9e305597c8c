"""Plan and windows -> the table of effects."""

import numpy as np
import pandas as pd

from castmates.analysis.effects.antagonists import bandwidth_columns
from castmates.analysis.effects.between_nodes import between_nodes, hosts_of, over_nodes
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.growth import growth_columns
from castmates.analysis.effects.rejections import rejection_columns
from castmates.analysis.effects.rows import launch_rows
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, effect_verdicts
from castmates.analysis.keys import ROW
from castmates.analysis.partitions.held import States, states
from castmates.analysis.statistics.intervals import columns_of, holm, lost, per_launch, ratio
from castmates.analysis.statistics.pairs import pair, planned
from castmates.results.columns.study import EFFECTS
from castmates.study.memory_peak import Peak
from castmates.study.services import service_members
from castmates.study.spec import UNMANAGED, Plan

LATE = "p99 of latency"  # of an open-loop service, which is judged by it


def estimate_effects(
    plan: Plan,
    windows: pd.DataFrame,
    margin: float,
    level: float = EFFECT_LEVEL,
    held: States | None = None,
    peak: Peak | None = None,
) -> pd.DataFrame:
    """A row per active mix, partition, baseline, member and platform, also where nothing was measured yet.

    `held` is what the processor held under partitions, where that was read; `peak` is the memory bandwidth that was
    measured as the most of the machine.
    """
    contrasts = mix_contrasts(plan)
    own = planned(windows, plan)
    values = per_launch(pair(own, contrasts), ROW)
    table = over_nodes(launch_rows(own, contrasts, values), between_nodes(values, hosts_of(own), ROW), ROW)
    table = table.assign(**growth_columns(own, contrasts, table))
    table = table.assign(**bandwidth_columns(plan, own, contrasts, table, peak))
    # A study asks one question per baseline, and a separate one of its partitions, so that an added sweep does not
    # weigh on what is known without one; results of one platform are no test of another.
    partitioned = table["partition"] != UNMANAGED
    table["p_holm"] = table.groupby(["platform", "role", "baseline", partitioned])["p_value"].transform(holm)
    table["verdict"] = effect_verdicts(table, margin, level)
    table["nodes_p_holm"] = table.groupby(["platform", "role", "baseline", partitioned])["nodes_p"].transform(holm)
    known = states(plan) if held is None else held
    table["held"] = [known.get(place, "") for place in zip(table["mix"], table["partition"], strict=True)]
    return _columns(table, plan)[list(EFFECTS)].astype(dict(EFFECTS))


def _columns(table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    return table.assign(
        study=plan.study,
        machine=plan.machine,
        metric=np.where(table["member"].isin(list(service_members(plan))), LATE, "rate"),
        **columns_of(table, "slowdown", ratio),
        **columns_of(table, "loss_pct", lost, ends="loss"),
        within_low=ratio(table["within_low"]),
        within_high=ratio(table["within_high"]),
        **rejection_columns(table),
    )
