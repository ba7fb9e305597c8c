"""Shares of short intervals -> shares of the phases that they fall into; pure.

Where enough intervals lie wholly in phases of a name, their mean is taken. Where phases are shorter than intervals,
each interval is a mixture of phases, and a regression of its shares on the parts of its time unmixes them: it holds as
far as a phase is alike each time, and as far as slots go with time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

FEWEST = 3  # intervals that lie wholly in a phase, or that much of intervals in all
WIDEST_ERROR = 0.05  # of a share from a regression
_WHOLLY = 0.999


@dataclass(frozen=True, slots=True)
class Interval:
    """Shares by category between two times."""

    begin_ns: int
    end_ns: int
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PhaseShare:
    """A category's share in all phases of a name."""

    phase: str
    metric: str
    value: float
    note: str


def of_phases(intervals: Sequence[Interval], spans: Mapping[str, Sequence[tuple[int, int]]]) -> list[PhaseShare]:
    """What is known of each phase (name -> the times of its parts), category by category."""
    if not intervals:
        return []
    import numpy as np  # every launch loads this module, and few come here

    names = list(spans)
    metrics = list(dict.fromkeys(metric for interval in intervals for metric in interval.shares))
    all_parts = np.array([[_part(interval, spans[name]) for name in names] for interval in intervals])
    all_parts = all_parts.reshape(len(intervals), len(names))
    phase_shares: list[PhaseShare] = []
    for metric in metrics:
        usable = [interval for interval in intervals if metric in interval.shares]
        values = np.array([interval.shares[metric] for interval in usable])
        parts = all_parts[[metric in interval.shares for interval in intervals]]
        # Phases within phases are no separate parts of a mixture, and nothing is known of a phase that was never met.
        mixed = [column for column, name in enumerate(names) if "/" not in name and parts[:, column].sum() > 0]
        unmixed = _unmixed(parts[:, mixed], values)
        for column, name in enumerate(names):
            wholly = parts[:, column] >= _WHOLLY
            if wholly.sum() >= FEWEST:
                note = f"mean of {wholly.sum()} intervals wholly in it"
                phase_shares.append(PhaseShare(name, metric, float(values[wholly].mean()), note))
            elif unmixed is not None and column in mixed and parts[:, column].sum() >= FEWEST:
                value, error = (float(numbers[mixed.index(column)]) for numbers in unmixed)
                if error <= WIDEST_ERROR and -error <= value <= 1 + error:
                    note = f"regression over {len(usable)} intervals, standard error {error:.3f}"
                    phase_shares.append(PhaseShare(name, metric, value, note))
    return phase_shares


def _part(interval: Interval, spans: Sequence[tuple[int, int]]) -> float:
    """The part of an interval that lies in these times."""
    inside = sum(max(0, min(interval.end_ns, end) - max(interval.begin_ns, begin)) for begin, end in spans)
    return inside / (interval.end_ns - interval.begin_ns)


def _unmixed(parts: "Floats", values: "Floats") -> "tuple[Floats, Floats] | None":
    """Least squares with their standard errors, what is in no phase being one more; None where it is not determined."""
    import numpy as np

    rest = 1.0 - parts.sum(axis=1, keepdims=True)
    if (rest < -(1 - _WHOLLY)).any():  # phases that lie in one another, whatever their names
        return None
    matrix = np.hstack([parts, np.clip(rest, 0.0, None)])
    matrix = matrix[:, matrix.sum(axis=0) > 0]
    count, unknown = matrix.shape
    if count <= 2 * unknown or np.linalg.matrix_rank(matrix) < unknown:
        return None
    solution, *_ = np.linalg.lstsq(matrix, values, rcond=None)
    residuals = values - matrix @ solution
    variance = float(residuals @ residuals) / (count - unknown)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix)))
    return solution, errors
