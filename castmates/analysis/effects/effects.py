"""Plan and windows -> the table of effects."""

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, adjusted, declared, losses_of, within_launch
from castmates.analysis.effects.antagonists import bandwidth_columns
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.growth import growth_columns
from castmates.analysis.effects.rejections import rejection_columns
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, effect_verdicts
from castmates.analysis.partitions.held import States, states
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
    contrast = Contrast.of(plan, windows, mix_contrasts(plan))
    table = contrast.rows_over_nodes()
    table = table.assign(**growth_columns(contrast, table), **bandwidth_columns(plan, contrast, table, peak))
    # A study asks one question per baseline, and a separate one of its partitions, so that an added sweep does not
    # weigh on what is known without one; results of one platform are no test of another.
    family = ("platform", "role", "baseline", table["partition"] != UNMANAGED)
    table = table.assign(p_holm=adjusted(table, *family), nodes_p_holm=adjusted(table, *family, p="nodes_p"))
    known = states(plan) if held is None else held
    columns = {
        "verdict": effect_verdicts(table, margin, level),
        "held": [known.get(place, "") for place in zip(table["mix"], table["partition"], strict=True)],
        "metric": np.where(table["member"].isin(list(service_members(plan))), LATE, "rate"),
    }
    columns |= losses_of(table) | within_launch(table) | rejection_columns(table)
    return declared(table.assign(**columns), EFFECTS, plan)
