"""The margins of the matrix lead × antagonist: how sensitive a lead is, and how contentious an antagonist.

The geometric mean of a row or column of slowdowns, only where all of its cells were measured. The mixes of one cohort
share their launches, so a launch gives one value, the mean over them; cohorts are independent of each other.
"""

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import columns_of, lost, ratio
from castmates.analysis.statistics.pairs import pair, planned
from castmates.analysis.statistics.welch import summed
from castmates.results.columns.study import MARGINS, frame
from castmates.study.spec import UNMANAGED, Plan

SENSITIVITY, CONTENTIOUSNESS = "sensitivity", "contentiousness"
BASELINES = ("alone", "placebo")
_CELL = ["baseline", "lead", "antagonists"]
_SIDES = {SENSITIVITY: ("lead", "antagonists"), CONTENTIOUSNESS: ("antagonists", "lead")}


def margins(plan: Plan, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per margin, lead or antagonist, baseline and platform; without a partition."""
    contrasts = mix_contrasts(plan)
    wanted = (contrasts["partition"] == UNMANAGED) & (contrasts["role"] == "lead") & (contrasts["antagonists"] != "")
    contrasts = contrasts[wanted & contrasts["baseline"].isin(BASELINES)]
    if contrasts.empty:
        return frame([], MARGINS)
    pairs = pair(planned(windows, plan), contrasts).merge(contrasts.drop_duplicates("row")[["row", *_CELL]], on="row")
    values = pairs.groupby([*_CELL, "platform", *LAUNCH], observed=True)["difference"].mean().reset_index()
    if values.empty:  # every round has a rejected window
        return frame([], MARGINS)
    tables = [_margin(name, who, other, contrasts, values) for name, (who, other) in _SIDES.items()]
    table = pd.concat(tables, ignore_index=True).assign(study=plan.study, machine=plan.machine)
    return table[list(MARGINS)].astype(dict(MARGINS))


def _margin(name: str, who: str, other: str, contrasts: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    by = ["baseline", who, "platform"]
    size = contrasts.groupby("baseline", observed=True)[other].nunique()
    cells = values.drop_duplicates([*_CELL, "platform"]).groupby(by, observed=True).size().rename("cells")
    # A cell that several cohorts measured is shared out among them, so that no cell weighs more than another.
    homes = values.groupby([*_CELL, "platform"], observed=True)["cohort"].transform("nunique")
    parts = values.assign(part=values["difference"] / (homes * values["baseline"].map(size)))
    launches = parts.groupby([*by, *LAUNCH], observed=True).agg(value=("part", "sum"), present=("part", "size"))
    in_cohort = values.drop_duplicates([*_CELL, "platform", "cohort"]).groupby([*by, "cohort"], observed=True).size()
    launches = launches.join(in_cohort.rename("planned"))
    whole = launches[launches["present"] == launches["planned"]]
    table = cells.to_frame().join(_over_launches(whole, by)).reset_index().fillna({"launches": 0})
    table["cells_of"] = table["baseline"].map(size)
    numbers = ["mean", "low", "high"]
    cohorts = in_cohort.groupby(by, observed=True).size().to_numpy()
    seen = whole.reset_index().groupby(by, observed=True)["cohort"].nunique().reindex(cells.index, fill_value=0)
    # Without a single whole launch of some cohort the sum over cohorts would lack a part.
    table.loc[(table["cells"] < table["cells_of"]) | (seen.to_numpy() < cohorts), numbers] = np.nan
    losses = columns_of(table, "slowdown", ratio) | columns_of(table, "loss_pct", lost, ends="loss")
    return table.assign(margin=name, who=table[who], **losses)


def _over_launches(launches: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The sum over cohorts of their launches' means."""
    asked = {"mean": ("value", "mean"), "variance": ("value", "var"), "launches": ("value", "size")}
    return summed(launches.groupby([*by, "cohort"], observed=True).agg(**asked), by).drop(columns="p_value")
