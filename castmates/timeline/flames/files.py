"""Writes a flame graph: as SVG, as folded stacks, or as speedscope's JSON, by the ending of the file's name."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from castmates import __version__
from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.timeline.flames import words
from castmates.timeline.flames.drawing import draw
from castmates.timeline.flames.profile import ALONE, CORUN, Profile, is_run_again, profile
from castmates.timeline.flames.tree import STEP, Flame, difference, fold
from castmates.timeline.model import Timeline

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
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
        "$schema": SCHEMA,
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


FLAME = "flame"  # begins the names of graphs beside a trace
SVG, FOLDED, SPEEDSCOPE = ".svg", ".folded", ".speedscope.json"


@dataclass(frozen=True)
class Asked:
    """Which flame graph of a trace is wanted; members and scenes that are empty have defaults."""

    member: str = ""
    thread: str = ""
    scene: str = ""
    is_difference: bool = False
    per: str = STEP
    operations: bool = False

    def filled(self, timeline: Timeline) -> "Asked":
        """The lead if no member is named; its difference if no scene is."""
        lead = str(timeline.about.get("lead") or "")
        member = self.member or lead
        compared = self.is_difference or (not self.scene and member == lead)
        return replace(self, member=member, is_difference=compared, scene="" if compared else self.scene or CORUN)


def drawn(timeline: Timeline, asked: Asked) -> Flame:
    """The flame graph that is asked for."""

    def one(scene: str) -> Profile:
        return profile(timeline, asked.member, scene, asked.thread or None, asked.operations)

    if asked.is_difference:
        return difference(one(ALONE), one(CORUN), asked.per)
    return fold(one(asked.scene), asked.per)


def name_of(asked: Asked) -> str:
    """What a flame graph is called beside its trace."""
    parts = [FLAME, asked.member, asked.thread, "difference" if asked.is_difference else asked.scene]
    parts += ["operations" if asked.operations else "", "" if asked.per == STEP else asked.per]
    parts = [part for part in parts if part]
    return f"{'-'.join(parts).replace('/', '_').replace(':', '-')}{SVG}"


def write_beside(timeline: Timeline, place: Path, study: str, mix: str) -> Path | None:
    """Write the lead's difference beside its trace; None where there are no stacks of both scenes."""
    asked = Asked(is_difference=True).filled(timeline)
    try:
        flame = drawn(timeline, asked)
    except CastmatesError:
        return None
    file = place / name_of(asked)
    write(flame, file, title_of(flame), source_of(timeline, study, mix))
    return file


def warnings(timeline: Timeline) -> list[str]:
    """A sentence on the graphs of each member that is run again and again, alone and beside others."""
    members = [name for name in timeline.about.get("members") or () if is_run_again(timeline.about, name)]
    return [sentence for name in members if (sentence := words.warning(*_both(timeline, name)))]


def _both(timeline: Timeline, member: str) -> Iterator[Profile]:
    for scene in (ALONE, CORUN):
        with suppress(CastmatesError):  # no stacks of it there
            yield profile(timeline, member, scene)


def source_of(timeline: Timeline, study: str, mix: str) -> str:
    """The line at a flame graph's foot: where its numbers come from."""
    return f"{timeline.about.get('platform') or 'measured'} · study {study}, trace of {mix}"


def title_of(flame: Flame) -> str:
    """What a flame graph shows."""
    who = flame.after.member
    if flame.before is not None:
        return f"{who}: CPU time by function, beside others against alone"
    return f"{who}: CPU time by function, {words.where(flame.after.scene)}"


def write(flame: Flame, file: Path, title: str, source: str) -> None:
    """Write it."""
    if file.name.endswith(SPEEDSCOPE):
        text = json.dumps(speedscope(flame, title))
    elif file.suffix == FOLDED:
        text = folded(flame)
    elif file.suffix == SVG:
        text = draw(flame, title, source)
    else:
        raise CastmatesError(f"{file}: expected a name that ends in {SVG}, {FOLDED} or {SPEEDSCOPE} (--output).")
    with writing(file):
        replace_text(file, text)
