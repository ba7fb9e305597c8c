"""The ratio of two means that come from the same launches, with Fieller's interval.

Both numbers of a launch vary together, and the one below the line is known only so well: the interval is the set of all
ratios r for which mean(above - r * below) does not differ from zero by the t test. Where the mean below the line may be
zero, that set has no ends, and there is no interval.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, quantile


def ratio_of_means(launches: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """By group: `ratio` of the means of `above` and `below`, with `low` and `high`; a row of `launches` is a launch."""
    rows = launches.assign(square=launches["above"] ** 2, other=launches["below"] ** 2)
    rows["product"] = rows["above"] * rows["below"]
    means = rows.groupby(list(by), observed=True)[["above", "below", "square", "other", "product"]].mean()
    count = rows.groupby(list(by), observed=True).size().to_numpy(dtype=float)
    above, below = means["above"].to_numpy(dtype=float), means["below"].to_numpy(dtype=float)
    enough = np.where(count >= FEWEST_LAUNCHES, count - 1, np.nan)
    far = quantile(enough) ** 2 / enough  # the square of t, times what makes a mean's variance of a spread's
    a = below**2 - far * (means["other"] - below**2).clip(lower=0)
    b = above * below - far * (means["product"] - above * below)
    c = above**2 - far * (means["square"] - above**2).clip(lower=0)
    bounded = a > 0
    half = np.sqrt((b**2 - a * c).clip(lower=0)) / a
    middle = b / a
    ratio = pd.Series(above, means.index) / pd.Series(below, means.index).where(below != 0)
    return pd.DataFrame({"ratio": ratio, "low": (middle - half).where(bounded), "high": (middle + half).where(bounded)})
