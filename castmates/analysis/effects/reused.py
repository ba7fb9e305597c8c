"""Whether control launches that are reused from another study differ from those of the study itself."""

from collections.abc import Collection

import pandas as pd

from castmates.analysis.core import Contrast, between
from castmates.analysis.effects.contrasts import AGAIN, control_contrasts
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import holm
from castmates.study.spec import Plan

CHANGED = 0.01  # below this p-value the machine has changed since then
ORIGIN = "origin"


def difference_of_reused(plan: Plan, windows: pd.DataFrame, reused: Collection[str]) -> float | None:
    """The smallest p-value of the controls, adjusted for their number; None where none can be compared.

    An analysis of variance of the launches' means by where they come from. With one launch of its own it asks
    whether that one is as far from the others as these are from each other.
    """
    contrasts = control_contrasts(plan)
    contrast = Contrast.of(plan, windows, contrasts[contrasts["control"] != AGAIN])
    launches = contrast.windows.drop_duplicates(LAUNCH)[LAUNCH]
    origin = [f"{cohort}/{number}" in reused for cohort, number in launches.itertuples(index=False, name=None)]
    if not len(contrast.launches):
        return None
    found = between(contrast.launches, pd.Series(origin, index=pd.MultiIndex.from_frame(launches)), ORIGIN, ROW)
    p = found[f"{ORIGIN}_p"].dropna()
    return float(holm(p).min()) if len(p) else None
