"""Where everything lies in the small drawings of the first screen: intervals on one scale, loss against ways."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from castmates.report.answer.parts import Answer, Curve
from castmates.report.text.words import counted, number

# The common scale of all intervals in the result table, and of the ways in the curves.

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


WIDTH = 360.0  # of an interval's drawing
CURVE_WIDTH, CURVE_HEIGHT = 560.0, 246.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 32.0, 40.0  # the label of the knee stands above


@dataclass(frozen=True)
class Mark:
    """A point of a curve, with what is shown under the pointer."""

    x: float
    y: float
    low: float  # places of the ends of its interval
    high: float
    label: str
    chosen: bool  # as enough for the study's limit


@dataclass(frozen=True)
class CurveDrawing:
    """Loss against ways, as SVG needs it."""

    width: float
    height: float
    frame: tuple[float, float, float, float]  # left, top, right, bottom
    marks: tuple[Mark, ...]
    path: str
    shared: tuple[float, float, float] | None  # without a partition: the place of the loss, and of its interval's ends
    limit: float | None
    knee: tuple[float, float, float] | None  # the place of the knee, and of its interval's ends
    across: tuple[tuple[float, str], ...]  # ticks with their labels
    up: tuple[tuple[float, str], ...]


def interval_scale(answer: Answer, margin: float | None) -> Scale:
    """The scale of the result table."""
    values = (value for pair in answer.pairs for value in (pair.low, pair.high, pair.loss))
    return scale_of(values, 100 * margin if margin is not None else 0.0, WIDTH)


def curve_drawing(curve: Curve) -> CurveDrawing:
    """Places of all points, lines and ticks."""
    values = [value for point in curve.points for value in (point.loss, point.low, point.high)]
    values += [curve.shared, curve.shared_low, curve.shared_high, curve.limit]
    up = scale_of(values, 1.0, CURVE_HEIGHT - TOP - BOTTOM)
    most = max(curve.all_ways, *(point.ways for point in curve.points))

    def x(ways: float) -> float:
        return round(LEFT + (ways - 0.5) / most * (CURVE_WIDTH - LEFT - RIGHT), 2)

    def y(value: float) -> float:
        return round(CURVE_HEIGHT - BOTTOM - up.at(value), 2)

    marks = tuple(
        Mark(
            x(point.ways), y(point.loss), *_ends(y, point.low, point.high, point.loss),
            f"{counted(point.ways, 'way')}: {number(point.loss)} %", point.partition == curve.chosen,
        )
        for point in curve.points
    )  # fmt: skip
    return CurveDrawing(
        width=CURVE_WIDTH,
        height=CURVE_HEIGHT,
        frame=(LEFT, TOP, CURVE_WIDTH - RIGHT, CURVE_HEIGHT - BOTTOM),
        marks=marks,
        path=_path(marks),
        shared=None
        if math.isnan(curve.shared)
        else (y(curve.shared), *_ends(y, curve.shared_low, curve.shared_high, curve.shared)),
        limit=None if math.isnan(curve.limit) else y(curve.limit),
        knee=_knee(curve, x, most),
        across=tuple((x(ways), str(ways)) for ways in _whole(most)),
        up=tuple((y(tick), f"{tick:g}".replace("-", "\N{MINUS SIGN}")) for tick in up.ticks),
    )


def _knee(curve: Curve, x: Callable[[float], float], most: int) -> tuple[float, float, float] | None:
    """Its interval reaches to the end of the ways where it has no end."""
    if curve.knee is None:
        return None
    knee, low, high = curve.knee
    return x(knee), x(low if low is not None else 0.5), x(high if high is not None else most + 0.5)


def _ends(y: Callable[[float], float], low: float, high: float, value: float) -> tuple[float, float]:
    """Places of an interval's ends; both at the value where there is no interval."""
    return (y(value), y(value)) if math.isnan(low) else (y(low), y(high))


def _path(marks: Sequence[Mark]) -> str:
    return " ".join(f"{'L' if place else 'M'}{mark.x} {mark.y}" for place, mark in enumerate(marks))


def _whole(most: int) -> range:
    """Ways that have a tick."""
    step = next(step for step in (1, 2, 4, 5, 10) if most / step <= 12 or step == 10)
    return range(step if step > 1 else 1, most + 1, step)
