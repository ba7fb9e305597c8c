"""What a job loses beside several others, from what it loses beside each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from castmates.analysis.prediction.conformal import Errors
from castmates.analysis.prediction.observed import Cell, mixes_of
from castmates.analysis.statistics.intervals import Floats

ADDED = 1.0  # the extra time beside each of them adds up
POWERS = (0.7, 0.8, 0.9, ADDED, 1.1, 1.25, 1.5, 2.0, 3.0)  # below 1 they hurt more together, above it less
FEWEST_MIXES = 8  # measured, before anything but adding up is believed


def combined_loss(logs: Sequence[float], power: float = ADDED) -> float:
    """The logarithm of the slowdown beside all of them; who makes a job faster makes nobody else's harm less."""
    extra = np.maximum(np.expm1(np.asarray(logs, dtype=float)), 0.0)
    return float(np.log1p((extra**power).sum() ** (1 / power)))


@dataclass(frozen=True)
class Combined:
    """How losses beside several others come about in a study."""

    power: float = ADDED
    errors: Errors | None = None  # None where too little was measured
    left_out: Mapping[Cell, float] = field(default_factory=dict)  # predicted by the power that the other mixes give

    @classmethod
    def of(cls, measured: Mapping[Cell, tuple[Sequence[float], float]]) -> "Combined":
        """From jobs' logarithms beside each of several others, and beside all of them."""
        if not measured:
            return cls()
        truth = np.array([whole for _, whole in measured.values()])
        guesses = np.array([[combined_loss(each, one) for each, _ in measured.values()] for one in POWERS])
        off = np.abs(np.exp(-guesses) - np.exp(-truth))
        mixes = [mixes_of(cell) for cell in measured]
        others = np.array([[mix != other for other in mixes] for mix in mixes], dtype=float)
        apart = [_best(off @ kept, int(kept.sum())) for kept in others]
        predicted = guesses[apart, np.arange(len(truth))]
        left_out = dict(zip(measured, map(float, predicted), strict=True))
        return cls(POWERS[_best(off.sum(axis=1), len(truth))], Errors.of(predicted, truth), left_out)


def _best(off: Floats, count: int) -> int:
    """Which of the powers is least off, over so many losses."""
    return int(off.argmin()) if count >= FEWEST_MIXES else POWERS.index(ADDED)
