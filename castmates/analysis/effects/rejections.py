"""How often slices and windows of a scene were rejected, and whether that may have biased its effect."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.pairs import tally

# Decided beforehand: rejected more often than the baseline by Fisher's exact test, and by enough to matter.
BIAS_LEVEL = 0.05
WINDOW_POINTS = 0.05
SLICE_POINTS = 0.02  # where the ledger sees some of what strikes a scene's slices, there may be more that it misses

Flags = npt.NDArray[np.bool_]


def rejection_columns(counts: pd.DataFrame) -> dict[str, Floats | Flags]:
    """`rejection_rate`, `baseline_rejection_rate` and `possibly_biased`, from the counts of `tally`."""
    kept, lost, alone = (_both(counts, f"slices_{name}") for name in ("kept", "lost", "lost_alone"))
    valid, rejected, spoilt = (_both(counts, f"windows_{name}") for name in ("valid", "rejected", "spoilt"))
    rate = _share(lost, kept + lost)
    # Slices that go with their window are one event and not many: these windows are tested by themselves.
    biased = _more_often(alone, kept + alone, SLICE_POINTS) | _more_often(spoilt, valid + rejected, WINDOW_POINTS)
    return {"rejection_rate": rate[0], "baseline_rejection_rate": rate[1], "possibly_biased": biased}


def possibly_biased(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.Series:
    """The flag of every row and platform that has windows."""
    counts = tally(windows, contrasts)
    return pd.Series(rejection_columns(counts)["possibly_biased"], index=counts.index, name="possibly_biased")


def _both(counts: pd.DataFrame, name: str) -> Floats:
    """This count of the scenes, and below it that of their baselines."""
    return np.stack([counts[f"{prefix}{name}"].to_numpy(dtype=float) for prefix in ("", "baseline_")])


def _more_often(lost: Floats, whole: Floats, points: float) -> Flags:
    here, base = _share(lost, whole)
    rounding = 1e-9  # 0.15 - 0.10 is a little less than 0.05
    more = here - base >= points - rounding
    for place in np.flatnonzero(more):
        more[place] = _chance(*lost[:, place], *whole[:, place]) < BIAS_LEVEL
    return np.asarray(more)


def _chance(here: float, base: float, of_here: float, of_base: float) -> float:
    """The chance that so many of all the rejected ones fall on the scene, or more, if they fall anywhere alike.

    It is the tail of a hypergeometric distribution; scipy.stats has it too, and takes half a second to import.
    """
    from scipy.special import gammaln

    count = np.arange(here, min(of_here, here + base) + 1)

    def log_ways(whole: float | Floats, part: float | Floats) -> Floats:
        return np.asarray(gammaln(whole + 1) - gammaln(part + 1) - gammaln(whole - part + 1))

    own, others = log_ways(of_here, count), log_ways(of_base, here + base - count)
    return float(np.exp(own + others - log_ways(of_here + of_base, here + base)).sum())


def _share(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
