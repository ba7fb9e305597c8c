"""Whether a loss still grows within slices: then they are too short for it, and it is underestimated."""

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import estimate, holm, more_than_none
from castmates.analysis.statistics.pairs import pair

LEVEL = 0.05
LEAST_PCT = 1.0  # of the slowdown: less is no reason for longer slices


def growth_columns(windows: pd.DataFrame, contrasts: pd.DataFrame, table: pd.DataFrame) -> dict[str, pd.Series]:
    """Of each row of `table`: how much more slices lose in their later halves than in their earlier ones."""
    halves = windows.assign(rate=windows["later"])
    found = estimate(pair(halves, contrasts), by=["row", "platform"])
    found = found.reindex(pd.MultiIndex.from_frame(table[["row", "platform"]])).reset_index()
    growth, low, high = (100 * np.expm1(found[name]) for name in ("log", "log_low", "log_high"))
    # Only growth is of interest, and every row of a platform is a chance to see some where there is none.
    certain = more_than_none(found).groupby(found["platform"]).transform(holm) < LEVEL
    return {
        "growth_pct": growth,
        "growth_low": low,
        "growth_high": high,
        "still_growing": certain & (growth >= LEAST_PCT),
    }
