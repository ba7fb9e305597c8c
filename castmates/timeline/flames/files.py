"""Writes a flame graph: as SVG, as folded stacks, or as speedscope's JSON, by the ending of the file's name."""

import json
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.timeline.flames.drawing import draw
from castmates.timeline.flames.exporting import folded, speedscope
from castmates.timeline.flames.profile import CORUN, SOLO, scene_kind
from castmates.timeline.flames.tree import Flame

SVG, FOLDED, SPEEDSCOPE = ".svg", ".folded", ".speedscope.json"


def name_of(member: str, thread: str, scene: str, operations: bool = False) -> str:
    """What a flame graph is called beside its trace; without a scene it is a difference."""
    parts = ["flame", member, *filter(None, [thread]), scene or "difference", *(["operations"] if operations else [])]
    return f"{'-'.join(parts).replace('/', '_').replace(':', '-')}{SVG}"


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
