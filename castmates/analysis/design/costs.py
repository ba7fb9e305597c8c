"""What it costs a lead to be watched: pairs of windows, with and without a collector -> change of its rate.

A pair is the log of the rate with it over the rate without it. Launches are the units where there are enough of them.
"""

import math
from typing import TYPE_CHECKING, Literal

from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, estimate, gained

if TYPE_CHECKING:
    import pandas as pd

WIDE_PCT = 1.0  # an interval that contains 0 and reaches so far to either side shows nothing of use

Verdict = Literal["costs", "speeds up", "none seen", "unresolved", "too few pairs"]


def costs(pairs: "pd.DataFrame") -> "pd.DataFrame":
    """Reduce `difference` (a row per pair: collector, cohort, launch) to a change in per cent for each collector.

    From three launches on the interval is that between launches, else that of the pairs within them.
    """
    table = estimate(pairs, ["collector"])
    between = table["launches"] >= FEWEST_LAUNCHES
    table["change_pct"] = gained(table["mean"])
    for end in ("low", "high"):
        table[end] = gained(table[end].where(between, table[f"within_{end}"]))
    table["between_launches"] = between
    table["verdict"] = [
        verdict(low, high) for low, high in zip(table["low"].astype(float), table["high"].astype(float), strict=True)
    ]
    shown = ["change_pct", "low", "high", "between_launches", "verdict"]
    return table.rename(columns={"rounds": "pairs"})[["launches", "pairs", *shown]].reset_index()


def verdict(low: float, high: float) -> Verdict:
    """What an interval of the change shows."""
    if math.isnan(low) or math.isnan(high):
        return "too few pairs"
    if high < 0:
        return "costs"
    if low > 0:
        return "speeds up"
    return "unresolved" if max(-low, high) > WIDE_PCT else "none seen"
