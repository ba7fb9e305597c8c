"""Losses that were measured in both roles: does what an antagonist loses stand for what a lead would lose?"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.prediction.observed import ANTAGONIST, LEAD, Cell, seen_in
from castmates.analysis.prediction.table import never_pooled


@dataclass(frozen=True)
class Roles:
    """How the two differ, in points."""

    count: int  # losses that were measured in both roles
    mean: float  # by how much the lead's is above the antagonist's; NaN where there are none
    off: float  # mean of the differences without their sign


def both_roles(effects: pd.DataFrame) -> Roles:
    """Of every job beside the same others on one platform and class of nodes."""
    differences = []
    for _, _, own in never_pooled(effects):
        found: dict[Cell, dict[str, float]] = defaultdict(dict)
        for each in seen_in(own):
            found[each.cell][each.how] = each.pct
        differences += [one[LEAD] - one[ANTAGONIST] for one in found.values() if len(one) > 1]
    if not differences:
        return Roles(0, math.nan, math.nan)
    return Roles(len(differences), float(np.mean(differences)), float(np.mean(np.abs(differences))))
