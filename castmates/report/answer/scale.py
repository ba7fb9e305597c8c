"""The common scale of all intervals in the result table, and of the ways in the curves."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STEPS = (1, 2, 5, 10, 20, 25, 50)
TICKS = 6  # at most
LEAST, MOST = -50.0, 100.0  # per cent; an interval that reaches further is cut off, and its end is in the table


@dataclass(frozen=True)
class Scale:
    """From per cent to a place in a drawing of this width."""

    low: float
    high: float
    width: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The place of a value; of one beyond the scale its end."""
        clipped = min(max(value, self.low), self.high)
        return round((clipped - self.low) / (self.high - self.low) * self.width, 2)

    def cut(self, value: float) -> bool:
        """Whether the value lies beyond the scale."""
        return not self.low <= value <= self.high


def scale_of(values: Iterable[float], margin: float, width: float) -> Scale:
    """A scale that holds zero, the margin on both sides and all known values, with round ticks."""
    known = [value for value in values if math.isfinite(value)]
    low = max(LEAST, min([-1.5 * margin, 0.0, *known]))
    high = min(MOST, max([1.5 * margin, 1.0, *known]))
    room = 0.04 * (high - low)
    low, high = low - room, high + room
    return Scale(low, high, width, tuple(_ticks(low, high)))


def _ticks(low: float, high: float) -> Sequence[float]:
    step = next((step for step in STEPS if (high - low) / step <= TICKS), STEPS[-1])
    first = math.ceil(low / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)]
