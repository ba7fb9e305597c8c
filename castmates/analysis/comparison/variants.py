"""Plan and windows -> whether a lead in other settings loses more or less beside others than the lead as it is.

A variant and its base are different leads, so their launches are independent: the logarithms of their slowdowns are
compared by Welch's t over the launches of both, as those of two studies are.
"""

import numpy as np
import pandas as pd

from castmates.analysis.comparison.launches import LOGS, launch_means, questions, side_of, spread
from castmates.analysis.core import adjusted, declared
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, variant_verdicts
from castmates.analysis.statistics.intervals import columns_of, ratio
from castmates.analysis.statistics.welch import one_sample, welch
from castmates.results.columns.study import frame
from castmates.results.columns.variants import VARIANT_EFFECTS
from castmates.study.class_names import named, without_class
from castmates.study.spec import UNMANAGED, Plan

_SAME = ["antagonists", "partition", "platform"]  # in a row of a variant and in the one of its base


def variant_effects(plan: Plan, windows: pd.DataFrame, margin: float, level: float = EFFECT_LEVEL) -> pd.DataFrame:
    """A row per variant, antagonists, partition and platform; p is adjusted over all of them."""
    if not plan.variants:
        return frame([], VARIANT_EFFECTS)
    both = _beside_each_other(plan, _leads(plan, windows))
    if both.empty:
        return frame([], VARIANT_EFFECTS)
    sides = {name: [side_of(both, name, end) for end in ("_base", "")] for name in LOGS}
    difference = welch(*sides["loss"])
    table = both.assign(**{str(name): values for name, values in difference.items()})
    columns = columns_of(difference, "ratio", ratio)
    for prefix, side in zip(("base_", ""), sides["loss"], strict=True):
        columns |= columns_of(one_sample(side), f"{prefix}slowdown", ratio)
    for column, name in (("speed", "baseline"), ("speed_beside", "scene")):
        columns |= columns_of(welch(*sides[name]), column, lambda logs: table["work"] * ratio(logs))
    table = table.assign(**columns, base_launches=table["launches_base"], base_mix=table["mix_base"])
    table["p_holm"] = adjusted(table, table["partition"] != UNMANAGED)
    table["verdict"] = variant_verdicts(table, margin, level)
    return declared(table, VARIANT_EFFECTS, plan)


def _leads(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """Every lead against alone: what its launches show, mean and variance."""
    asked = questions(plan)
    asked = asked[(asked["role"] == "lead") & (asked["baseline"] == "alone") & (asked["antagonists"] != "")]
    found = spread(launch_means(plan, windows)).reset_index("platform")
    table = asked.join(found, how="inner")
    return table.assign(workload=table["lead"].map(without_class))


def _beside_each_other(plan: Plan, leads: pd.DataFrame) -> pd.DataFrame:
    """The rows of each variant, with those of its base beside the same antagonists."""
    known = pd.DataFrame([each.model_dump() for each in plan.variants]).rename(
        columns={"lead": "base", "name": "variant"}
    )
    known = known.assign(order=np.arange(len(known)))
    own = known.merge(leads, on="workload")
    both = own.merge(leads, left_on=["base", *_SAME], right_on=["workload", *_SAME], suffixes=("", "_base"))
    both["lead"] = [named(base, plan.machine) for base in both["base"]]
    return both.sort_values("order", kind="stable", ignore_index=True)
