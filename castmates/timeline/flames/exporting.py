"""Folded stacks and speedscope's JSON: for FlameGraph, speedscope and whatever else reads them."""

from collections.abc import Iterator
from typing import Any

from castmates import __version__
from castmates.timeline.flames import words
from castmates.timeline.flames.profile import Profile
from castmates.timeline.flames.tree import Flame

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
UNITS = {"cpu-clock": "nanoseconds"}  # of other events speedscope has no unit


def folded(flame: Flame) -> str:
    """A line per stack with its samples; of a difference alone and beside others, as difffolded.pl writes them.

    The first line is a comment, which ends in a word: readers of this format take lines that end in a number.
    """
    after = _samples(flame.after)
    head = f"# {words.small_print(flame)} (castmates help tracing-flame)\n"
    if flame.before is None:
        return head + "".join(f"{stack} {after[stack]}\n" for stack in sorted(after))
    before = _samples(flame.before)
    every = sorted({*before, *after})
    return head + "".join(f"{stack} {before.get(stack, 0)} {after.get(stack, 0)}\n" for stack in every)


def speedscope(flame: Flame, title: str) -> dict[str, Any]:
    """A profile for each scene, in speedscope's own format."""
    frames: dict[str, int] = {}
    profiles = [_sampled(each, frames) for each in (flame.before, flame.after) if each is not None]
    return {
        "$schema": SPEEDSCOPE,
        "name": f"{title}. {words.small_print(flame)}",
        "exporter": f"castmates {__version__}",
        "activeProfileIndex": len(profiles) - 1,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }


def _samples(profile: Profile) -> dict[str, int]:
    return {str(stack): int(count) for stack, count in profile.stacks.groupby("stack")["samples"].sum().items()}


def _sampled(profile: Profile, frames: dict[str, int]) -> dict[str, Any]:
    summed = profile.stacks.groupby("stack", sort=True)["weight"].sum()
    weights = [float(weight) for weight in summed]
    return {
        "type": "sampled",
        "name": f"{profile.member}, {profile.scene}",
        "unit": UNITS.get(profile.event, "none"),
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [list(_numbers(str(stack), frames)) for stack in summed.index],
        "weights": weights,
    }


def _numbers(stack: str, frames: dict[str, int]) -> Iterator[int]:
    for name in stack.split(";"):
        yield frames.setdefault(name, len(frames))
