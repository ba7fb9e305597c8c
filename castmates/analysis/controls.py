"""Plan and windows -> the A/A control: an independent second solo of each lead against the first."""

import pandas as pd

from castmates.analysis.contrasts import control_contrasts
from castmates.analysis.intervals import holm, ratio
from castmates.analysis.rows import rows
from castmates.analysis.verdicts import control_verdicts
from castmates.study.spec import Plan
from castmates.tables import CONTROLS


def estimate_controls(plan: Plan, windows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A row per lead and platform; all leads of a platform are judged together."""
    table = rows(plan, windows, control_contrasts(plan))
    table["p_holm"] = table.groupby("platform")["p_value"].transform(holm)
    table["verdict"] = control_verdicts(table, margin)
    table = table.assign(
        study=plan.study,
        control="A/A",
        ratio=ratio(table["log"]),
        ratio_low=ratio(table["log_low"]),
        ratio_high=ratio(table["log_high"]),
        within_low=ratio(table["log_within_low"]),
        within_high=ratio(table["log_within_high"]),
    )
    return table[list(CONTROLS)].astype(dict(CONTROLS))
