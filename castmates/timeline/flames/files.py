"""Writes a flame graph: as SVG, as folded stacks, or as speedscope's JSON, by the ending of the file's name."""

import json
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.timeline.flames.drawing import draw
from castmates.timeline.flames.exporting import folded, speedscope
from castmates.timeline.flames.profile import CORUN, SOLO, profile, scene_kind
from castmates.timeline.flames.tree import STEP, Flame, difference
from castmates.timeline.model import Timeline

FLAME = "flame"  # begins the names of graphs beside a trace
SVG, FOLDED, SPEEDSCOPE = ".svg", ".folded", ".speedscope.json"


def name_of(member: str, thread: str, scene: str, operations: bool = False) -> str:
    """What a flame graph is called beside its trace; without a scene it is a difference."""
    parts = [FLAME, member, *filter(None, [thread]), scene or "difference", *(["operations"] if operations else [])]
    return f"{'-'.join(parts).replace('/', '_').replace(':', '-')}{SVG}"


def write_beside(timeline: Timeline, place: Path, study: str, mix: str) -> Path | None:
    """Write the lead's difference beside its trace; None where there are no stacks of both scenes."""
    lead = str(timeline.about.get("lead") or "")
    try:
        drawn = difference(profile(timeline, lead, SOLO), profile(timeline, lead, CORUN), STEP)
    except CastmatesError:
        return None
    file = place / name_of(lead, "", "")
    write(drawn, file, title_of(drawn), source_of(timeline, study, mix))
    return file


def source_of(timeline: Timeline, study: str, mix: str) -> str:
    """The line at a flame graph's foot: where its numbers come from."""
    return f"{timeline.about.get('platform') or 'measured'} · study {study}, trace of {mix}"


def title_of(flame: Flame) -> str:
    """What a flame graph shows."""
    who = flame.after.member
    if flame.before is not None:
        return f"{who}: CPU time by function, beside others against alone"
    kind = scene_kind(flame.after.scene)
    where = {SOLO: "alone", CORUN: "beside others"}.get(kind, f"in scene {kind}")
    return f"{who}: CPU time by function, {where}"


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
