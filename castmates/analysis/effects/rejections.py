"""How often the slices of a scene were rejected, and whether that may have biased its effect."""

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.pairs import tally

# Decided beforehand: rejected more often than the baseline by Fisher's exact test, and by enough to matter.
BIAS_LEVEL = 0.05
BIAS_POINTS = 0.05


def rejection_columns(counts: pd.DataFrame) -> dict[str, Floats | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """`rejection_rate`, `baseline_rejection_rate` and `possibly_biased`, from the four counts of slices."""
    kept, lost, base_kept, base_lost = (
        counts[name].to_numpy(dtype=float)
        for name in ("slices_kept", "slices_lost", "baseline_slices_kept", "baseline_slices_lost")
    )
    from scipy import stats

    here, base = _share(lost, kept + lost), _share(base_lost, base_kept + base_lost)
    everything = kept + lost + base_kept + base_lost
    # The chance that so many of all the rejected slices fall on the scene, if they fall anywhere alike.
    chance = stats.hypergeom.sf(lost - 1, everything, lost + base_lost, kept + lost)
    rounding = 1e-9  # 0.15 - 0.10 is a little less than 0.05
    return {
        "rejection_rate": here,
        "baseline_rejection_rate": base,
        "possibly_biased": (chance < BIAS_LEVEL) & (here - base >= BIAS_POINTS - rounding),
    }


def possibly_biased(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.Series:
    """The flag of every row and platform that has windows."""
    counts = tally(windows, contrasts)
    return pd.Series(rejection_columns(counts)["possibly_biased"], index=counts.index, name="possibly_biased")


def _share(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
