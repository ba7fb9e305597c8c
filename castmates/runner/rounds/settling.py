"""How long rates take to become steady after a change of scene: found from the heartbeats since the change.

The occupancy of each active process, where the machine shows it often enough, is looked at in the same way.

Each active process of each window gives its progress from the change of scene to the window's end, as the log rate of
every slice of that time against the rate of the later half. Each process is looked at in each scene by itself, as one
scene may settle slowly where all others settle at once, and over all its scenes. Running means of a few slices are held
against the tolerance and against their scatter between windows. Where rates became steady only after the windows were
opened, all windows of the block so far do not count, and the next ones wait longer (the second time, as long as they
may): a rule that looks at the course of a window, never at the difference between scenes.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from castmates.runner.rounds.window import OCCUPANCY_OF, Window

SLICES = 24
HALF = SLICES // 2
TOGETHER = 4  # slices whose mean is judged
TOLERANCE = 0.02  # on the log scale
FEWEST_CURVES = 3  # of a scene
FEWEST_FREE = 8  # degrees of freedom of the scatter between windows
REASON = "not settled"
MORE = 1.25  # times as long as was seen, because what is seen is the edge of a slice

Curve = Sequence[float | None]  # log rate of each slice against the later half
Scenes = dict[str, list[Curve]]  # one process's curves, by scene


@dataclass
class Settling:
    """The settle time in use, and what was found about it."""

    seconds: float
    longest: float
    steady_after: float | None = None  # seconds; None where it was not looked for, or not seen
    raised: bool = False
    unsteady: bool = False  # not even the longest settle time was enough
    slowest: str = ""  # whose rate took that long
    watched: float = 0.0  # seconds after a change that were looked at
    curves: dict[str, Scenes] = field(default_factory=dict)  # by process

    def __post_init__(self) -> None:
        """Look for it only where it may be raised."""
        self._wanted = self.longest > self.seconds

    def learn(self, windows: Iterable[Window]) -> str:
        """Take in a round; a reason where the block's windows were opened too early, and the next will wait longer."""
        usable = [window for window in windows if not window.reasons]
        if not self._wanted or not usable:
            return ""
        self.watched = self.watched or min(_seconds(window.switch_ns, window.close_ns) for window in usable)
        for window in usable:
            for name, records in window.since_switch.items():
                if curve := curve_of(records, window.switch_ns, self.watched):
                    self.curves.setdefault(name, {}).setdefault(window.scene.name, []).append(curve)
        if not self.curves:
            return ""
        last_slices = {name: last_off(scenes) for name, scenes in self.curves.items()}
        name = max(last_slices, key=lambda name: last_slices[name])
        last, scene = last_slices[name]
        slice_s = self.watched / SLICES
        self.slowest = name + (f" in {scene}" if scene else "")
        self.steady_after = None if last >= HALF else (last + 1) * slice_s
        # A slice that straddles the opening is forgiven: the settle time is no multiple of slices.
        if self.steady_after is not None and self.steady_after <= self.seconds + slice_s:
            return ""
        self.unsteady = self.seconds >= self.longest
        return "" if self.unsteady else self._wait_longer()

    def about(self) -> dict[str, object]:
        """Return what block.json has of it."""
        return {
            "seconds": round(self.seconds, 4),
            "steady_after": None if self.steady_after is None else round(self.steady_after, 4),
            "unsteady": self.unsteady,
            "slowest": self.slowest,
            "watched": round(self.watched, 4),
            "curves": {name: sum(map(len, scenes.values())) for name, scenes in self.curves.items()},
        }

    def _wait_longer(self) -> str:
        waited, after = self.seconds, self.steady_after
        self.seconds = self.longest if after is None or self.raised else min(self.longest, MORE * after)
        self.raised = True
        seen = "did not become steady" if after is None else f"became steady after {after:.2f} s"
        self.watched = 0.0
        self.curves.clear()
        what = self.slowest if self.slowest.startswith(OCCUPANCY_OF) else f"rate of {self.slowest}"
        return f"{REASON}: the {what} {seen}, but the window opened after {waited:.2f} s"


def curve_of(records: Sequence[tuple[int, int]], begin_ns: int, watched_s: float) -> Curve | None:
    """Return one process's log rates; None where it made too few steps for a slice to mean anything."""
    if len(records) < HALF:
        return None
    times = [t_ns for t_ns, _ in records]
    edges = [begin_ns + int(watched_s * 1e9 * number / SLICES) for number in range(SLICES + 1)]
    done = [_units_at(edge, times, records) for edge in edges]
    half, (last_ns, last) = done[HALF], records[-1]
    if half is None or last <= half:
        return None
    usual = (last - half) / (last_ns - edges[HALF]) * (edges[1] - edges[0])
    steps = [None if a is None or b is None else b - a for a, b in pairwise(done)]
    return [None if step is None else math.log(max(step, 0.01 * usual) / usual) for step in steps]


def last_off(scenes: Mapping[str, Sequence[Curve]]) -> tuple[int, str]:
    """Return the last slice, up to the middle one, in which a rate has not settled, and the scene ("": in all).

    -1 where there is none.
    """
    last, where = -1, ""
    for first in range(HALF - TOGETHER + 2):
        place = range(first, first + TOGETHER)
        means = {
            scene: [fmean(values) for curve in curves if (values := _known(curve, place))]
            for scene, curves in scenes.items()
        }
        off = _scene_that_is_off({scene: known for scene, known in means.items() if known})
        if off is not None:
            last, where = min(place[-1], HALF), off
    return last, where


def _known(curve: Curve, place: Iterable[int]) -> list[float]:
    return [value for number in place if (value := curve[number]) is not None]


def _scene_that_is_off(scenes: Mapping[str, Sequence[float]]) -> str | None:
    """Return the scene whose windows agree that the rate was another; "" for all together, None for none of them.

    The scatter is that of windows of the same scene, over all scenes: a machine whose speed wanders has much of it.
    """
    every = [mean for means in scenes.values() for mean in means]
    freedom = len(every) - len(scenes)
    if freedom < FEWEST_FREE:
        return None
    squares = {scene: math.fsum((mean - fmean(means)) ** 2 for mean in means) for scene, means in scenes.items()}
    usual = math.fsum(squares.values()) / freedom
    # About Student's quantile at one in a hundred thousand, as hundreds of means are looked at in a block.
    errors = 4.4 + 30 / freedom
    for scene, means in [("", every), *scenes.items()]:
        if len(means) < FEWEST_CURVES:
            continue
        own = squares[scene] / (len(means) - 1) if scene else 0.0
        error = errors * math.sqrt(max(usual, own) / len(means))
        if abs(fmean(means)) > max(TOLERANCE, error):
            return scene
    return None


def _units_at(t_ns: int, times: Sequence[int], records: Sequence[tuple[int, int]]) -> float | None:
    """Progress at a moment, on the line between the heartbeats around it; None before the first and after the last."""
    after = bisect_right(times, t_ns)
    if after in (0, len(records)):
        return None
    (t0, u0), (t1, u1) = records[after - 1], records[after]
    return u0 + (u1 - u0) * (t_ns - t0) / (t1 - t0)


def _seconds(begin_ns: int, end_ns: int) -> float:
    return (end_ns - begin_ns) / 1e9
