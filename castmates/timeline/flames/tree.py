"""Stacks folded into a tree of frames; with two profiles, each frame has what it takes on both sides.

Is a difference more than the luck of sampling? Alone and beside others, a frame has n1 and n2 samples in e1 and e2
steps (or seconds). If nothing differs, n1 of their sum is binomial with the share e1 / (e1 + e2). The root of the
deviance from that, with the sign of the difference, is near normal even for few samples. Where a scene was recorded
several times, samples may vary more between recordings than Poisson's law has it: the deviance is divided by how much
more.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from castmates.errors import CastmatesError
from castmates.timeline.flames.profile import Profile

ENOUGH = 10  # samples of both sides together; of fewer nothing is claimed
BEYOND = 2.0  # roots of the deviance: of frames that do not differ, one in twenty is beyond


def root_of_deviance(before: float, after: float, before_in: float, after_in: float, dispersion: float = 1.0) -> float:
    """How far two numbers of samples are from equal rates; above 0 where the second rate is higher."""
    total = before + after
    if total <= 0 or before_in <= 0 or after_in <= 0:
        return 0.0
    expected = total * after_in / (before_in + after_in)
    deviance = 2 * (_part(after, expected) + _part(before, total - expected))
    return math.copysign(math.sqrt(max(deviance, 0.0) / dispersion), after - expected)


def _part(seen: float, expected: float) -> float:
    return seen * math.log(seen / expected) if seen > 0 else 0.0


def is_noise(before: float, after: float, root: float) -> bool:
    """Whether a difference may be luck."""
    return before + after < ENOUGH or abs(root) < BEYOND


def dispersion(profiles: tuple[Profile, ...], per: str) -> float:
    """How much more samples of functions vary between recordings of a scene than Poisson's law has it; at least 1."""
    excess, freedom = 0.0, 0
    for each in profiles:
        exposure = np.array([one.steps if per == "step" else one.t1_ns - one.t0_ns for one in each.stretches], float)
        if len(exposure) < 2 or exposure.sum() <= 0:
            continue
        functions = each.stacks.assign(function=each.stacks["stack"].str.rpartition(";")[2])
        seen = functions.pivot_table(index="function", columns="stretch", values="samples", aggfunc="sum", fill_value=0)
        counts = seen.reindex(columns=range(len(exposure)), fill_value=0).to_numpy(float)
        counts = counts[counts.sum(axis=1) >= ENOUGH]
        expected = counts.sum(axis=1, keepdims=True) * exposure / exposure.sum()
        kept = exposure > 0
        excess += float((((counts - expected) ** 2)[:, kept] / expected[:, kept]).sum())
        freedom += len(counts) * (int(kept.sum()) - 1)
    return max(1.0, excess / freedom) if freedom else 1.0


ROOT = "all"
STEP = "step"


@dataclass(slots=True)
class Side:
    """What a frame takes in one profile."""

    samples: int = 0
    weight: float = 0.0  # with all that it calls
    own: float = 0.0  # without


@dataclass(slots=True)
class Frame:
    """A frame with those that it calls."""

    name: str
    before: Side = field(default_factory=Side)  # alone; empty where there is one profile
    after: Side = field(default_factory=Side)
    calls: dict[str, "Frame"] = field(default_factory=dict)
    root: float = 0.0  # of the deviance, see `is_noise`
    noise: bool = True

    def below(self) -> Iterator["Frame"]:
        """This frame, and all below it."""
        waiting = [self]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting.extend(frame.calls.values())


@dataclass(frozen=True)
class Flame:
    """A tree, and by what its weights are divided."""

    root: Frame
    per: str
    after: Profile
    before: Profile | None = None
    dispersion: float = 1.0

    def values(self, frame: Frame) -> tuple[float, float]:
        """What a frame takes in a step or a second: alone, and in the profile."""
        before = frame.before.weight / self.before.exposure(self.per) if self.before else 0.0
        return before, frame.after.weight / self.after.exposure(self.per)

    def own(self, frame: Frame) -> tuple[float, float]:
        """The same without what it calls."""
        before = frame.before.own / self.before.exposure(self.per) if self.before else 0.0
        return before, frame.after.own / self.after.exposure(self.per)


def fold(profile: Profile, per: str) -> Flame:
    """The tree of one profile."""
    _check(profile, per)
    root = Frame(ROOT)
    _grow(root, profile, "after")
    return Flame(root, per, profile)


def difference(before: Profile, after: Profile, per: str) -> Flame:
    """The tree of two profiles, whose frames are told apart from noise."""
    for each in (before, after):
        _check(each, per)
    if before.event != after.event:
        raise CastmatesError(f"stacks were sampled by {before.event} and by {after.event}; they cannot be compared.")
    root = Frame(ROOT)
    _grow(root, before, "before")
    _grow(root, after, "after")
    wider = dispersion((before, after), per)
    before_in, after_in = before.exposure(per), after.exposure(per)
    for frame in root.below():
        seen = frame.before.samples, frame.after.samples
        frame.root = root_of_deviance(*seen, before_in, after_in, wider)
        frame.noise = is_noise(*seen, frame.root)
    return Flame(root, per, after, before, wider)


def functions(flame: Flame) -> list[Frame]:
    """Every function by itself, wherever it is called from, those that differ (or take) most first."""
    found: dict[str, Frame] = {}
    for frame in flame.root.below():
        if not frame.before.own and not frame.after.own:
            continue
        one = found.setdefault(frame.name, Frame(frame.name))
        for side in ("before", "after"):
            mine, theirs = getattr(one, side), getattr(frame, side)
            mine.samples += theirs.samples - sum(getattr(each, side).samples for each in frame.calls.values())
            mine.weight += theirs.own
            mine.own += theirs.own
    if flame.before is not None:
        before_in, after_in = flame.before.exposure(flame.per), flame.after.exposure(flame.per)
        for one in found.values():
            seen = one.before.samples, one.after.samples
            one.root = root_of_deviance(*seen, before_in, after_in, flame.dispersion)
            one.noise = is_noise(*seen, one.root)

    def size(one: Frame) -> float:
        before, after = flame.values(one)
        return -abs(after - before)

    return sorted(found.values(), key=size)


def _check(profile: Profile, per: str) -> None:
    if not profile.samples:
        raise CastmatesError(f"no stack of {profile.member} was sampled in scene {profile.scene}.")
    if profile.exposure(per) <= 0:
        raise CastmatesError(
            f"{profile.member} reported no steps while stacks were sampled in scene {profile.scene}; "
            "compare by the second (--per second)."
        )


def _grow(root: Frame, profile: Profile, side: str) -> None:
    """Add the stacks of a profile to one side of a tree."""
    summed = profile.stacks.groupby("stack", sort=True)[["samples", "weight"]].sum()
    for stack, samples, weight in summed.itertuples():
        frame = root
        for name in ("", *str(stack).split(";")):
            frame = frame.calls.setdefault(name, Frame(name)) if name else frame
            mine: Side = getattr(frame, side)
            mine.samples += int(samples)
            mine.weight += float(weight)
        own: Side = getattr(frame, side)
        own.own += float(weight)
