"""What a job loses beside several others, from what it loses beside each of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from castmates.analysis.prediction.conformal import Errors

ADDED = 1.0  # the extra time beside each of them adds up
POWERS = (0.7, 0.8, 0.9, ADDED, 1.1, 1.25, 1.5, 2.0, 3.0)  # below 1 they hurt more together, above it less
FEWEST_MIXES = 8  # measured, before anything but adding up is believed


def together(logs: Sequence[float], power: float = ADDED) -> float:
    """The logarithm of the slowdown beside all of them; who makes a job faster makes nobody else's harm less."""
    extra = np.maximum(np.expm1(np.asarray(logs, dtype=float)), 0.0)
    return float(np.log1p((extra**power).sum() ** (1 / power)))


@dataclass(frozen=True)
class Combined:
    """How losses beside several others come about in a study."""

    power: float = ADDED
    errors: Errors | None = None  # None where too little was measured

    @classmethod
    def of(cls, measured: Iterable[tuple[Sequence[float], float]]) -> "Combined":
        """From jobs' logarithms beside each of several others, and beside all of them."""
        known = list(measured)
        truth = np.array([whole for _, whole in known])
        power = ADDED
        if len(known) >= FEWEST_MIXES:
            power = min(POWERS, key=lambda one: _off([together(each, one) for each, _ in known], truth))
        predicted = np.array([together(each, power) for each, _ in known])
        return cls(power, Errors.of(predicted, truth) if known else None)


def _off(predicted: Sequence[float], measured: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.abs(np.exp(-np.asarray(predicted)) - np.exp(-measured)).mean())
