"""How far predictions were off where the truth was measured."""

from dataclasses import dataclass

import pandas as pd

GRID, PROFILE, CHECK, SEVERAL = "grid", "profile", "check", "several"  # parts of the table of predictions


@dataclass(frozen=True)
class Quality:
    """Errors of predictions, in points of the rate when alone."""

    count: int  # losses that were measured and predicted without their mix
    mean: float  # of the absolute errors; NaN where there are none
    largest: float
    inside: int  # of those with an interval, how many it contains
    with_interval: int


def quality(predictions: pd.DataFrame, part: str) -> Quality:
    """Of one part of the table: `grid` (each left out in turn), `check` (fresh mixes), `several`."""
    rows = predictions[(predictions["part"] == part) & predictions["error"].notna()]
    known = rows[rows["without_low"].notna() & rows["without_high"].notna()]
    inside = (known["without_low"] <= known["loss_pct"]) & (known["loss_pct"] <= known["without_high"])
    off = rows["error"].abs()
    return Quality(len(rows), float(off.mean()), float(off.max()), int(inside.sum()), len(known))
