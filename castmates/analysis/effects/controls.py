"""Plan and windows -> the controls: what must not differ (A/A, negative) and what must (positive)."""

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, adjusted, declared, within_launch
from castmates.analysis.effects.contrasts import POSITIVE, control_contrasts, own_leads
from castmates.analysis.effects.verdicts import control_verdicts
from castmates.analysis.statistics.intervals import columns_of, more_than, ratio
from castmates.results.columns.study import CONTROLS
from castmates.study.spec import Plan


def estimate_controls(plan: Plan, windows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A row per control and platform; all that must not differ on a platform are judged together."""
    table = Contrast.of(plan, windows, control_contrasts(plan)).rows()
    positive = table["control"] == POSITIVE
    # To show a loss is another question than to show none: the positive control is a separate family. A loss that the
    # study would call none is no evidence that it sees losses: it has to be shown to exceed the margin.
    table["p_value"] = table["p_value"].where(~positive, more_than(table, np.log1p(margin)))
    table["p_holm"] = adjusted(table, "platform", positive)
    columns = columns_of(table, "ratio", ratio) | within_launch(table)
    about = {"verdict": control_verdicts(table, margin), "study_lead": table["member"].isin(own_leads(plan))}
    return declared(table.assign(**columns, **about), CONTROLS, plan)
