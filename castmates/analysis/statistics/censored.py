"""Quantiles of times of which some are known to be longer than was looked at: by Kaplan and Meier's estimate.

A request that was not answered when its slice ended is no request that took no time: to leave it out would make every
quantile too small, and most of all where a service does not keep up.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


ROUNDING = 1e-9  # of a share


@dataclass(frozen=True)
class Quantile:
    """A quantile, or where too many times were cut off, the time that it certainly exceeds."""

    value: float  # NaN where there are no times
    is_bound: bool = False


def quantile(times: Floats, cut_off: Floats, share: float) -> Quantile:
    """The least time by which this share had ended; `cut_off` has how long the others were looked at, to no end."""
    every = np.concatenate([times, cut_off])
    if not len(every):
        return Quantile(np.nan)
    ended = np.concatenate([np.ones(len(times), dtype=bool), np.zeros(len(cut_off), dtype=bool)])
    order = np.lexsort((~ended, every))  # of equal times, those that ended come first: they were still looked at
    every, ended = every[order], ended[order]
    at_risk = len(every) - np.arange(len(every))
    # The last one at risk may end: then nobody is left.
    left = np.cumprod(np.where(ended, 1 - 1 / at_risk, 1.0))
    found = np.flatnonzero(ended & (left <= 1 - share + ROUNDING))
    if len(found):
        return Quantile(float(every[found[0]]))
    return Quantile(float(every[-1]), is_bound=True)
