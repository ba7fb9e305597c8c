"""How long rates take to become steady after a change of scene: found from the heartbeats of all slices.

Each active process of each slice gives its progress from the switch to the slice's end, as the log rate of every bin
of that time against the rate of the later half. Each process is looked at in each scene by itself, as one scene may
settle slowly where all others settle at once, and over all its scenes. Running means of a few bins are held to the
tolerance and to their scatter between slices. What comes before rates are steady is left out of every slice.
Where they are not steady in the first half of a slice, all slices of the launch so far do not count, and the next ones
are longer: a rule that looks at the course of a slice, never at the difference between scenes.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from castmates.runner.rounds.slices import Slice
from castmates.study.reasons import Reason, ReasonKind

BINS = 24
HALF = BINS // 2
TOGETHER = 4  # bins whose mean is judged
PLACES = HALF - TOGETHER + 2  # of these means
TOLERANCE = 0.02  # on the log scale
FEWEST_RECORDS = 4  # of a process in a slice
FEWEST_CURVES = 3  # of a scene
FEWEST_FREE = 8  # degrees of freedom of the scatter between slices
MORE = 1.25  # times as long as was seen, because what is seen is the edge of a bin

Curve = Sequence[float | None]  # log rate of each bin against the later half


@dataclass
class Scatter:
    """A number of values, their sum and the sum of their squares."""

    count: int = 0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Take in a value."""
        self.count += 1
        self.sum += value
        self.squares += value * value

    def __add__(self, other: "Scatter") -> "Scatter":
        return Scatter(self.count + other.count, self.sum + other.sum, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.sum / self.count

    @property
    def around_mean(self) -> float:
        """The sum of the squares of what they differ from it."""
        return max(0.0, self.squares - self.sum * self.sum / self.count)


@dataclass
class Response:
    """The curves of one process in one scene, added up."""

    curves: int = 0
    places: list[Scatter] = field(default_factory=lambda: [Scatter() for _ in range(PLACES)])
    bins: list[Scatter] = field(default_factory=lambda: [Scatter() for _ in range(BINS)])

    def add(self, curve: Curve) -> None:
        """Take in the curve of a slice."""
        self.curves += 1
        for each, value in zip(self.bins, curve, strict=True):
            if value is not None:
                each.add(value)
        for first, place in enumerate(self.places):
            if known := [value for value in curve[first : first + TOGETHER] if value is not None]:
                place.add(fmean(known))


Scenes = Mapping[str, Response]  # of one process, by scene


@dataclass
class Settling:
    """The settle time in use, and what was found about it."""

    seconds: float  # of the lead, and of everybody else at least
    longest: float
    lead: str
    others: dict[str, float] = field(default_factory=dict)  # longer ones, by process
    steady_after: float | None = None  # seconds; None where it was not looked for, or not seen
    unsteady: bool = False  # not even the longest settle time was enough
    slowest: str = ""  # the lead, and its scene that took that long
    watched: float = 0.0  # seconds after a change that were looked at
    responses: dict[str, dict[str, Response]] = field(default_factory=dict)  # by process, by scene
    earlier: list[dict[str, object]] = field(default_factory=list)  # what slices of other lengths showed, as recorded

    def __post_init__(self) -> None:
        """Look for it only where it may be raised."""
        self._wanted = self.longest > self.seconds
        self._tried_longest = False

    def watch(self, length_s: float) -> None:
        """Begin anew with slices of this length."""
        if length_s != self.watched:
            if self.responses:
                self.earlier.append(self._seen())
            self.watched = length_s
            self.responses = {}

    def learn(self, slices: Iterable[Slice]) -> Reason | None:
        """Take in a round; a reason where its slices were too short to become steady, and the next will be longer."""
        usable = [each for each in slices if not each.reasons]
        if not self._wanted or not usable:
            return None
        for each in usable:
            for name, records in each.since_switch.items():
                if curve := curve_of(records, each.switch_ns, self.watched):
                    self.responses.setdefault(name, {}).setdefault(each.scene.name, Response()).add(curve)
        for name, scenes in self.responses.items():
            if name != self.lead:
                self._learn_of_another(name, scenes)
        return self._learn_of_lead(self.responses[self.lead]) if self.lead in self.responses else None

    def seconds_of(self, name: str, at_most: float = math.inf) -> float:
        """How long is left out of this process's slices."""
        return min(at_most, max(self.seconds, self.others.get(name, 0.0)))

    def about(self) -> dict[str, object]:
        """Return what launch.json has of it."""
        return {
            "seconds": round(self.seconds, 4),
            "steady_after": None if self.steady_after is None else round(self.steady_after, 4),
            "unsteady": self.unsteady,
            "slowest": self.slowest,
            "others": {name: round(seconds, 4) for name, seconds in self.others.items()},
            "earlier": self.earlier,
        } | self._seen()

    def _seen(self) -> dict[str, object]:
        """The curves of slices of one length, averaged."""
        return {
            "watched": round(self.watched, 4),
            "curves": {name: sum(each.curves for each in scenes.values()) for name, scenes in self.responses.items()},
            "response": {name: _mean_curve(scenes.values()) for name, scenes in self.responses.items()},
        }

    def _learn_of_lead(self, scenes: Scenes) -> Reason | None:
        last, scene = last_off(scenes)
        if last >= HALF and last_off(scenes, certain=True)[0] < HALF:
            last = HALF - 1  # not sure enough to throw slices away: the next ones are longer
        bin_s = self.watched / BINS
        self.slowest = self.lead + (f" in {scene}" if scene else "")
        self.steady_after = None if last >= HALF else (last + 1) * bin_s
        if self.steady_after is None:
            return self._longer_slices()
        # A bin that straddles the opening is forgiven: the settle time is no multiple of bins.
        if self.steady_after > self.seconds + bin_s:
            self.unsteady = self.seconds >= self.longest
            self.seconds = min(self.longest, MORE * self.steady_after)
        return None

    def _learn_of_another(self, name: str, scenes: Scenes) -> None:
        """Leave out more of its own slices, half of them at most; the lead's are as long as the lead wants them."""
        after = (last_off(scenes)[0] + 1) * self.watched / BINS
        if after > self.seconds_of(name) + self.watched / BINS:
            self.others[name] = min(self.longest, MORE * after, self.watched / 2)

    def _longer_slices(self) -> Reason | None:
        """Wait for longer: first as long as what was looked at, then as long as we may."""
        if self.seconds >= self.longest:
            self.unsteady = True
            return None
        self.seconds = self.longest if self._tried_longest else min(self.longest, self.watched)
        self._tried_longest = True
        late = f"the rate of {self.slowest} did not become steady in the first half of {self.watched:.2f} s"
        return Reason(ReasonKind.NOT_SETTLED, late)


def curve_of(records: Sequence[tuple[int, int]], begin_ns: int, watched_s: float) -> Curve | None:
    """Return one process's log rates; None where it made too few steps for a curve to mean anything."""
    if len(records) < FEWEST_RECORDS:
        return None
    times = [t_ns for t_ns, _ in records]
    edges = [begin_ns + int(watched_s * 1e9 * number / BINS) for number in range(BINS + 1)]
    done = [_units_at(edge, times, records) for edge in edges]
    half, (last_ns, last) = done[HALF], records[-1]
    if half is None or last <= half:
        return None
    usual = (last - half) / (last_ns - edges[HALF]) * (edges[1] - edges[0])
    steps = [None if a is None or b is None else b - a for a, b in pairwise(done)]
    return [None if step is None else math.log(max(step, 0.01 * usual) / usual) for step in steps]


def last_off(scenes: Scenes, certain: bool = False) -> tuple[int, str]:
    """Return the last bin, up to the middle one, in which a rate has not settled, and the scene ("": in all).

    -1 where there is none; `certain` is as strict with all scenes together as with single ones.
    """
    last, where = -1, ""
    for first in range(PLACES):
        off = _scene_that_is_off(
            {name: response.places[first] for name, response in scenes.items() if response.places[first].count}, certain
        )
        if off is not None:
            last, where = min(first + TOGETHER - 1, HALF), off
    return last, where


def _scene_that_is_off(scenes: Mapping[str, Scatter], certain: bool) -> str | None:
    """Return the scene whose slices agree that the rate was another; "" for all together, None for none of them.

    The scatter is that of slices of the same scene, over all scenes: a machine whose speed wanders has much of it.
    """
    every = sum(scenes.values(), start=Scatter())
    freedom = every.count - len(scenes)
    if freedom < FEWEST_FREE:
        return None
    usual = math.fsum(scatter.around_mean for scatter in scenes.values()) / freedom
    for scene, scatter in [("", every), *scenes.items()]:
        if scatter.count < FEWEST_CURVES:
            continue
        own = scatter.around_mean / (scatter.count - 1) if scene else 0.0
        # About Student's quantile at one in a hundred thousand, because single scenes have hundreds of means
        # in a launch. All scenes together have ten times fewer means, and what lasts in all of them is worth
        # more false alarms (one in a thousand): those cost a longer settle time, while what is missed stays
        # in every rate.
        error = (4.4 + 30 / freedom if (certain or bool(scene)) else 3.3 + 15 / freedom) * math.sqrt(
            max(usual, own) / scatter.count
        )
        if abs(scatter.mean) > max(TOLERANCE, error):
            return scene
    return None


def _mean_curve(responses: Iterable[Response]) -> list[float | None]:
    """The mean curve of one process over its scenes, in log rate."""
    columns = zip(*(response.bins for response in responses), strict=True)
    bins = [sum(column, start=Scatter()) for column in columns]
    return [round(each.mean, 4) if each.count else None for each in bins]


def _units_at(t_ns: int, times: Sequence[int], records: Sequence[tuple[int, int]]) -> float | None:
    """Progress at a moment, on the line between the heartbeats around it; None before the first and after the last."""
    after = bisect_right(times, t_ns)
    if after in (0, len(records)):
        return None
    (t0, u0), (t1, u1) = records[after - 1], records[after]
    return u0 + (u1 - u0) * (t_ns - t0) / (t1 - t0)
