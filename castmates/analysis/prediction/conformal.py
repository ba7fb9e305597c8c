"""Intervals of predictions: from the errors that were made where the truth was measured, relative to the loss.

With n such errors, each from a fit without the mix that it is of, the k-th smallest holds a further one with the
probability k / (n + 1) if they are exchangeable (Vovk, Gammerman and Shafer 2005; Barber and others 2021). So 95 % need
19 errors; with fewer there is no interval.
"""

import math
from dataclasses import dataclass

import numpy as np

from castmates.analysis.statistics.intervals import CONFIDENCE, Floats

FEWEST = math.ceil(CONFIDENCE / (1 - CONFIDENCE))  # errors that an interval needs


@dataclass(frozen=True)
class Errors:
    """How far predictions were off, in units of their own size."""

    floor: float  # that is added to each size: a loss of nothing is predicted with an error too
    sizes: Floats  # ascending

    @classmethod
    def of(cls, predicted: Floats, measured: Floats) -> "Errors":
        """The errors of these logarithms."""
        floor = float(np.median(np.abs(predicted))) if len(predicted) else 0.0
        floor = max(floor, 0.005)
        off = np.abs(measured - predicted) / (floor + np.abs(predicted))
        return cls(floor, np.sort(off))

    def half_width(self, predicted: float) -> float:
        """Of the 95 % interval around a predicted logarithm; NaN where there are too few errors."""
        count = len(self.sizes)
        place = math.ceil(CONFIDENCE * (count + 1))
        if place > count:
            return math.nan
        return float(self.sizes[place - 1]) * (self.floor + abs(predicted))
