"""Stacks folded into a tree of frames; with two profiles, each frame has what it takes on both sides."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.timeline.flames.noise import dispersion, is_noise, root_of_deviance
from castmates.timeline.flames.profile import Profile

ROOT = "all"
STEP, SECOND = "step", "second"


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
    root: float = 0.0  # of the deviance, see noise.py
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
