"""How long slices are: found for a launch from what its members did while they warmed up."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from castmates.study.spec import Design, Scene

STEPS = 5  # of the lead in a slice, at least
SWITCHES = 10  # times what a change of scene costs that a slice lasts, at least
SETTLES = 4  # times the settle time
SETTLE_STEPS, LONGEST_FIRST = 4, 0.06  # steps of the lead that are left out at first, and seconds at most
SERVICE_SETTLE, SERVICE_SLICE = 0.05, 0.25  # seconds, at least, of an open-loop lead, whose queue must become steady
PERIODS = 5  # of a quota of CPU time, so that slices hold about as much of it each
SHORTEST = 0.06  # seconds; much shorter slices would measure their own edges
FEWEST_BEATS = 3  # of a member in a slice: one that makes fewer is measured in watched slices alone


@dataclass(frozen=True)
class Steps:
    """How long a step of each member takes, and what a change of scene costs; in seconds."""

    of_scene: Mapping[str, float]  # by scene, of who ends its slices: the lead, or who is alone
    of_member: Mapping[str, float]  # the longest that was seen; infinite where one was not seen to make any
    switch: float

    def with_those_of(self, scenes: Iterable[tuple[str, str, float]]) -> "Steps":
        """These, and those of more scenes: each with who ends its slices, and how long a step of that one took."""
        of_scene, of_member = dict(self.of_scene), dict(self.of_member)
        for scene, who, step in scenes:
            of_scene[scene] = step
            of_member[who] = max(step, of_member.get(who, 0.0))
        return Steps(of_scene, of_member, self.switch)


@dataclass(frozen=True)
class Pace:
    """The lengths of a launch's slices."""

    length_s: float  # from one switch to the next, but for the step that ends it
    settle_s: float
    watch_s: float  # that a watched slice is open, at least
    slow: frozenset[str]  # members that make too few steps in a slice
    steps: Steps
    cycles: int  # slices that make a window
    why: str = ""  # what the length comes from

    @property
    def length_ns(self) -> int:
        """Nanoseconds from one switch to the next."""
        return int(self.length_s * 1e9)

    @property
    def settle_ns(self) -> int:
        """Nanoseconds that are left out after a switch."""
        return int(self.settle_s * 1e9)

    @property
    def watch_ns(self) -> int:
        """Nanoseconds that a watched slice is open, at least."""
        return int(self.watch_s * 1e9)

    def about(self) -> dict[str, object]:
        """Return what launch.json has of it."""
        return {
            "slice": round(self.length_s, 4),
            "because": self.why,
            "watch": self.watch_s,
            "switch": round(self.steps.switch, 6),
            "slow": sorted(self.slow),
            "steps": {
                name: round(step, 6) if math.isfinite(step) else None for name, step in self.steps.of_member.items()
            },
        }

    def step_of(self, scene: Scene) -> float:
        """How long a step takes that ends a slice of this scene, as far as it is known."""
        return self.steps.of_scene.get(scene.name) or max(self.steps.of_scene.values(), default=0.0)

    def of_length(self, measured_s: float, settle_s: float) -> "Pace":
        """The pace of single slices that settle, and measure, for so long."""
        return replace(self, length_s=settle_s + measured_s, settle_s=settle_s, watch_s=0.0, slow=frozenset())


def first_settle(design: Design, steps: Steps, lead: str, open_loop: bool = False) -> float:
    """How long is left out before anything was seen: the study's time, or a few steps of the lead.

    A training job beside a streaming one took tens of milliseconds to become as slow as it was to stay: too little to
    be seen in one launch, and some points of its loss. The rate of an open-loop service does not show when its queue
    has become steady.
    """
    of_steps = min(SETTLE_STEPS * _longest_of(lead, steps), LONGEST_FIRST, design.longest_settle)
    return max(design.settle, of_steps, min(SERVICE_SETTLE, design.longest_settle) if open_loop else 0.0)


def pace_of(
    design: Design,
    steps: Steps,
    lead: str,
    settle_s: float,
    watch_s: float,
    period_s: float = 0.0,
    open_loop: bool = False,
) -> Pace:
    """Choose the length of slices: the study's, or the shortest that serves the lead, the switch and the settling."""
    wishes = {
        f"{STEPS} steps of the lead": settle_s + (STEPS + 1) * _longest_of(lead, steps),
        f"{SWITCHES} times a change of scene": SWITCHES * steps.switch,
        f"{SETTLES} settle times": SETTLES * settle_s,
        "the shortest that is sensible": SHORTEST,
        "the queue of an open-loop service": SERVICE_SLICE if open_loop else 0.0,
        f"{PERIODS} periods of a quota": settle_s + PERIODS * period_s if period_s else 0.0,
    }
    # As long as the study wants, or as the lead needs for its steps; others with long steps are measured apart.
    window_s = max(design.window, design.steps * _longest_of(lead, steps))
    if design.slice is None:
        why, length_s = max(wishes.items(), key=lambda wish: wish[1])
        length_s = _filling_windows(length_s, settle_s, window_s)
    else:
        why, length_s = _as_fixed(design.slice, settle_s, STEPS * _longest_of(lead, steps), PERIODS * period_s)
    length_s = min(length_s, settle_s + design.longest_window)
    measured_s = length_s - settle_s
    cycles = max(1, math.ceil(round(window_s / max(measured_s, 1e-9), 3)))
    slow = frozenset(
        name for name, step in steps.of_member.items() if name != lead and FEWEST_BEATS * step > measured_s
    )
    return Pace(length_s, settle_s, watch_s, slow, steps, cycles, why)


def _as_fixed(length_s: float, settle_s: float, steps_s: float, periods_s: float) -> tuple[str, float]:
    """The study's length, unless more than a quarter of it would be left out; what it lacks is reported."""
    why = "the study"
    if length_s < SETTLES * settle_s:
        why, length_s = f"{SETTLES} settle times, more than the study's {1e3 * length_s:.0f} ms", SETTLES * settle_s
    if length_s - settle_s < steps_s:
        why += f"; too short for {STEPS} steps of the lead"
    if length_s - settle_s < periods_s:
        why += f"; too short for {PERIODS} periods of a quota"
    return why, length_s


def _filling_windows(length_s: float, settle_s: float, window_s: float) -> float:
    """As long, or so much longer that a whole number of slices makes a window: time beyond that would buy little."""
    measured_s = length_s - settle_s
    return settle_s + max(measured_s, window_s / max(1, round(window_s / measured_s)))


def _longest_of(lead: str, steps: Steps) -> float:
    return steps.of_member.get(lead, 0.0)
