"""Measured cells of a curve that only rises or only falls -> its other cells, interpolated, each with an error bound.

The measured values are first made monotone (isotonic regression, weighted by launches); between them runs a monotone
cubic. What is certain of a cell between two measured ones is only that it lies between these: its bound reaches from
the lower end of the one's interval to the upper end of the other's.
"""

from dataclasses import dataclass

import numpy as np

from castmates.analysis.statistics.intervals import Floats


@dataclass(frozen=True)
class Measured:
    """The measured cells of a curve, in the order in which values do not rise."""

    amount: Floats
    value: Floats  # log slowdowns
    low: Floats  # of their intervals; NaN where there are none
    high: Floats
    launches: Floats


@dataclass(frozen=True)
class Interpolated:
    """Values between them."""

    value: Floats
    low: Floats  # NaN where a neighbour has no interval
    high: Floats


def interpolate(measured: Measured, amounts: Floats) -> Interpolated:
    """The values at these amounts, all of which lie between measured ones."""
    smooth = monotone(measured.value, measured.launches)
    order = np.argsort(measured.amount)
    x, y = measured.amount[order], smooth[order]
    value = np.interp(amounts, x, y) if len(x) < 3 else _cubic(x, y, amounts)
    below = np.searchsorted(x, amounts, side="right") - 1
    low, high = measured.low[order], measured.high[order]
    ends_low = np.minimum(low[below], low[below + 1])
    ends_high = np.maximum(high[below], high[below + 1])
    # A value lies within what is certain of it, also where neighbours contradict each other.
    return Interpolated(np.clip(value, ends_low, ends_high), ends_low, ends_high)


def monotone(values: Floats, weights: Floats) -> Floats:
    """The closest values that do not rise (weighted least squares)."""
    from scipy.optimize import isotonic_regression  # takes a third of a second to import, which few tables need

    return np.asarray(isotonic_regression(values, weights=weights, increasing=False).x, dtype=float)


def _cubic(x: Floats, y: Floats, at: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(x, y)(at), dtype=float)
