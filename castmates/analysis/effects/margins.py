"""The margins of the matrix lead × antagonist: how sensitive a lead is, and how contentious an antagonist.

The geometric mean of a row or column of slowdowns, only where all of its cells were measured. The mixes of one cohort
share their launches, so a launch gives one value, the mean over them; cohorts are independent of each other.
"""

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, declared, losses_of
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.statistics.welch import cohort_means, summed
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
    values = Contrast.of(plan, windows, contrasts).by_launch(_CELL)
    if values.empty:  # every round has a rejected window
        return frame([], MARGINS)
    tables = [_margin(name, who, other, contrasts, values) for name, (who, other) in _SIDES.items()]
    return declared(pd.concat(tables, ignore_index=True), MARGINS, plan)


def _margin(name: str, who: str, other: str, contrasts: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    by = ["baseline", who, "platform"]
    cells = values.groupby(by, observed=True)[other].nunique().rename("cells")
    sums = summed(cohort_means(values.rename(columns={"difference": "loss", other: "mix"}), by), by)
    table = cells.to_frame().join(sums.drop(columns="p_value")).reset_index()
    table["cells_of"] = table["baseline"].map(contrasts.groupby("baseline", observed=True)[other].nunique())
    table.loc[table["cells"] < table["cells_of"], ["mean", "low", "high"]] = np.nan
    return table.assign(margin=name, who=table[who], **losses_of(table))
