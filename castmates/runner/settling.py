"""How long rates take to become steady after a change of scene: found from the heartbeats since the change.

Each active process of each window gives its progress from the change of scene to the window's end. The log rate of
every slice of that time, against the rate of the later half, is averaged over its windows. Rates are steady from the
first slice on after which no slice is off by more than the tolerance and its own error. Where that is later than the
settle time in use, the round does not count, and the next ones wait longer: a rule that looks at the course of a
window, never at the difference between scenes.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, stdev

from castmates.runner.window import Window

SLICES = 24
TOLERANCE = 0.02  # on the log scale
FEWEST_CURVES = 5
REASON = "not settled"
MORE = 1.25  # how much longer than found we wait, for what is found is the edge of a slice

Curve = Sequence[float | None]  # log rate of each slice against the later half


@dataclass
class Settling:
    """The settle time in use, and what was found about it."""

    seconds: float
    longest: float
    steady_after: float | None = None  # seconds; None where it was not looked for, or not seen
    slowest: str = ""  # whose rate took that long
    watched: float = 0.0  # seconds after a change that were looked at
    curves: dict[str, list[Curve]] = field(default_factory=dict)  # by process

    def learn(self, windows: Iterable[Window]) -> str:
        """Take in a round; a reason where its windows were opened too early, and the next ones will wait longer."""
        usable = [window for window in windows if not window.reasons]
        if self.longest <= self.seconds or not usable:
            return ""
        self.watched = self.watched or min(_seconds(window.switch_ns, window.close_ns) for window in usable)
        for window in usable:
            for name, records in window.since_switch.items():
                if curve := curve_of(records, window.switch_ns, self.watched):
                    self.curves.setdefault(name, []).append(curve)
        slice_s = self.watched / SLICES
        unsteady = {name: last_off(curves) + 1 for name, curves in self.curves.items() if len(curves) >= FEWEST_CURVES}
        if not unsteady:
            return ""
        self.slowest = max(unsteady, key=lambda name: unsteady[name])
        first = unsteady[self.slowest]
        self.steady_after = None if first > SLICES // 2 else first * slice_s
        # A slice that straddles the opening is forgiven: the settle time is no multiple of slices.
        if self.steady_after is not None and self.steady_after <= self.seconds + slice_s:
            return ""
        return self._wait_longer()

    def about(self) -> dict[str, object]:
        """What block.json says of it."""
        return {
            "seconds": round(self.seconds, 4),
            "steady_after": None if self.steady_after is None else round(self.steady_after, 4),
            "slowest": self.slowest,
            "watched": round(self.watched, 4),
            "curves": {name: len(curves) for name, curves in self.curves.items()},
        }

    def _wait_longer(self) -> str:
        waited = self.seconds
        longer = 2 * self.watched if self.steady_after is None else MORE * self.steady_after
        self.seconds = min(self.longest, longer)
        seen = (
            "did not become steady" if self.steady_after is None else f"became steady after {self.steady_after:.2f} s"
        )
        self.watched = 0.0
        self.curves.clear()
        return f"{REASON}: the rate of {self.slowest} {seen}, but the window opened after {waited:.2f} s"


def curve_of(records: Sequence[tuple[int, int]], begin_ns: int, watched_s: float) -> Curve | None:
    """One process's log rates; None where it made too few steps for a slice to mean anything."""
    if len(records) < SLICES // 2:
        return None
    times = [t_ns for t_ns, _ in records]
    edges = [begin_ns + int(watched_s * 1e9 * number / SLICES) for number in range(SLICES + 1)]
    done = [_units_at(edge, times, records) for edge in edges]
    half, (last_ns, last) = done[SLICES // 2], records[-1]
    if half is None or last <= half:
        return None
    usual = (last - half) / (last_ns - edges[SLICES // 2]) * (edges[1] - edges[0])
    steps = [None if a is None or b is None else b - a for a, b in pairwise(done)]
    return [None if step is None else math.log(max(step, 0.01 * usual) / usual) for step in steps]


def last_off(curves: Sequence[Curve]) -> int:
    """The last slice, up to the middle one, in which the rate is not yet what it will be; -1 where there is none."""
    columns = ([value for curve in curves if (value := curve[number]) is not None] for number in range(SLICES // 2 + 1))
    return max((number for number, values in enumerate(columns) if _is_off(values)), default=-1)


def _is_off(values: Sequence[float]) -> bool:
    if len(values) < FEWEST_CURVES:
        return False
    count = len(values)
    # Close to Student's quantile at three in a thousand, as a dozen slices are looked at in each round.
    error = (3 + 12 / count) * stdev(values) / math.sqrt(count)
    return abs(fmean(values)) > max(TOLERANCE, error)


def _units_at(t_ns: int, times: Sequence[int], records: Sequence[tuple[int, int]]) -> float | None:
    """Progress at a moment, on the line between the heartbeats around it; None before the first and after the last."""
    after = bisect_right(times, t_ns)
    if after in (0, len(records)):
        return None
    (t0, u0), (t1, u1) = records[after - 1], records[after]
    return u0 + (u1 - u0) * (t_ns - t0) / (t1 - t0)


def _seconds(begin_ns: int, end_ns: int) -> float:
    return (end_ns - begin_ns) / 1e9
