"""Writes a flame graph: as SVG, as folded stacks, or as speedscope's JSON, by the ending of the file's name."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.timeline.flames import words
from castmates.timeline.flames.drawing import draw
from castmates.timeline.flames.exporting import folded, speedscope
from castmates.timeline.flames.profile import ALONE, CORUN, Profile, profile
from castmates.timeline.flames.run_again import is_run_again
from castmates.timeline.flames.tree import STEP, Flame, difference, fold
from castmates.timeline.model import Timeline

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
