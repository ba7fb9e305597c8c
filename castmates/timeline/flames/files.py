"""Writes a flame graph: as SVG, as folded stacks, or as speedscope's JSON, by the ending of the file's name."""

import json
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from castmates import __version__
from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.timeline.flames import tree
from castmates.timeline.flames.profile import ALONE, CORUN, NO_OPERATION, Profile, is_run_again, profile
from castmates.timeline.flames.tree import STEP, Flame, Frame, difference, fold
from castmates.timeline.model import Timeline

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
UNITS = {"cpu-clock": "nanoseconds"}  # of other events speedscope has no unit


def folded(flame: Flame) -> str:
    """A line per stack with its samples; of a difference alone and beside others, as difffolded.pl writes them.

    The first line is a comment, which ends in a word: readers of this format take lines that end in a number.
    """
    after = _samples(flame.after)
    head = f"# {tree.small_print(flame)} (castmates help tracing-flame)\n"
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
        "name": f"{title}. {tree.small_print(flame)}",
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
    return [sentence for name in members if (sentence := tree.warning(*_both(timeline, name)))]


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
    return f"{who}: CPU time by function, {tree.where(flame.after.scene)}"


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


# A flame graph as one SVG: callers above, what they call below; it is searched and zoomed in a browser.

WIDTH, ROW, MARGIN, TOOLS = 1200.0, 17.0, 12.0, 600.0
LETTER = 7.0  # as wide as a letter of a frame's name is taken to be; flame.js has it too
LINE = 185  # letters of a line of small print
NARROWEST = 0.0006  # of the whole width; what is narrower cannot be seen
STEPS = (0.1, 0.3, 1.0)  # relative changes, at which the colours become stronger
KEYS = {
    "native": "native",
    "kernel": "kernel",
    "compiled": "compiled at run time",
    "python": "Python",
    "unknown": "not known",
}


def draw(flame: Flame, title: str, source: str) -> str:
    """The SVG; `source` is the line at its foot that names the study."""
    extents: dict[int, float] = {}
    whole = _extent(flame, flame.root, extents)
    scale = (WIDTH - 2 * MARGIN) / whole
    marks = list(_marks(flame, extents, scale, NARROWEST * whole))
    drawn = sum(1 for _ in flame.root.below())
    deepest = max(mark[0] for mark in marks)
    print_ = [("warning", line) for line in textwrap.wrap(tree.warning(flame.before, flame.after), LINE)]
    print_ += [("soft", line) for line in textwrap.wrap(tree.how_to_read(flame), LINE)]
    left_out = drawn - len(marks)
    undrawn = f" · not drawn: {left_out} frames that are too narrow, or below one with a single sample"
    foot = f"{source}{undrawn if left_out else ''}"
    head = 58 + 14 * len(print_) + 44
    height = head + ROW * (deepest + 1) + 30
    resources = files("castmates.timeline.flames")
    inner = WIDTH - 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" data-width="{inner:g}" role="group" aria-label="{escape(title)}">',
        f"<style>{(resources / 'flame.css').read_text(encoding='utf-8')}</style>",
        f'<rect class="ground" width="{WIDTH:g}" height="{height:g}"/>',
        f'<text class="title" x="{MARGIN:g}" y="26">{escape(title)}</text>',
        *(
            f'<text class="{kind}" x="{MARGIN:g}" y="{46 + 14 * place}">{escape(line)}</text>'
            for place, (kind, line) in enumerate(print_)
        ),
        _tools(),
        *_key(flame, 46 + 14 * len(print_)),
        f'<foreignObject x="{MARGIN:g}" y="{head - 36:g}" width="{inner:g}" height="32">'
        '<div xmlns="http://www.w3.org/1999/xhtml" class="reading" aria-live="polite"></div></foreignObject>',
        f'<svg x="{MARGIN:g}" y="{head:g}" width="{inner:g}" height="{ROW * (deepest + 1):g}">',
        *(mark[1] for mark in marks),
        "</svg>",
        f'<text class="soft" x="{MARGIN:g}" y="{height - 10:g}">{escape(foot)}</text>',
        f"<script><![CDATA[{(resources / 'flame.js').read_text(encoding='utf-8')}]]></script>",
        "</svg>\n",
    ]
    return "\n".join(parts)


def _extent(flame: Flame, root: Frame, extents: dict[int, float]) -> float:
    """How wide each frame is: what it takes in the profile, and below it what was seen alone only."""
    order = list(root.below())
    for frame in reversed(order):  # what is below a frame comes after it
        before, after = flame.own(frame)
        own = after if frame.after.samples else before
        extents[id(frame)] = own + sum(extents[id(each)] for each in frame.calls.values())
    return extents[id(root)]


def _marks(flame: Flame, extents: dict[int, float], scale: float, narrowest: float) -> Iterator[tuple[int, str]]:
    """Every frame that can be seen, with its depth."""
    waiting: list[tuple[Frame, int, float]] = [(flame.root, 0, 0.0)]
    while waiting:
        frame, depth, begin = waiting.pop()
        width = extents[id(frame)]
        if depth and width < narrowest:
            continue
        yield depth, _mark(flame, frame, depth, begin * scale, width * scale)
        if (
            frame.before.samples + frame.after.samples < 2
        ):  # what it calls has one sample as well: a tower, as deep as may be
            continue
        at = begin
        below = []
        for each in sorted(frame.calls.values(), key=lambda one: one.name):
            below.append((each, depth + 1, at))
            at += extents[id(each)]
        waiting.extend(reversed(below))


def _mark(flame: Flame, frame: Frame, depth: int, x: float, width: float) -> str:
    name = tree.short(frame.name)
    shown = tree.fitted(name, int((width - 6) / LETTER))
    return (
        f'<svg class="frame {colour(flame, frame, depth)}" x="{x:.2f}" y="{ROW * depth:g}" width="{width:.2f}" '
        f'height="{ROW:g}" data-x="{x:.4f}" data-w="{width:.4f}" data-d="{depth}" data-n="{escape(name)}" '
        f'tabindex="{-1 if depth else 0}">'
        f'<title>{escape(tree.detail(flame, frame))}</title><rect width="100%" height="{ROW - 1:g}"/>'
        f'<text x="3" y="12">{escape(shown)}</text></svg>'
    )


def colour(flame: Flame, frame: Frame, depth: int = 1) -> str:
    """The class of a frame: its kind, or of a difference how much it changed."""
    if flame.before is None:
        is_operation = depth == 1 and flame.after.by_operation and frame.name != NO_OPERATION
        return "operation" if is_operation else tree.kind(frame.name)
    gone = " gone" if not frame.after.samples else ""
    if frame.noise:
        return f"noise{gone}"
    before, after = flame.values(frame)
    least, most = sorted((before, after))
    amount = most / least - 1 if least else float("inf")
    strength = 1 + sum(amount >= step for step in STEPS)
    return f"{'r' if after > before else 'b'}{strength}{gone}"


def _tools() -> str:
    return (
        f'<foreignObject x="{WIDTH - TOOLS:g}" y="6" width="{TOOLS - MARGIN:g}" height="34">'
        '<div xmlns="http://www.w3.org/1999/xhtml" class="tools"><span class="found" role="status"></span>'
        '<input type="search" placeholder="Search frames" aria-label="Search frames"/>'
        '<button type="button">Whole graph</button></div></foreignObject>'
    )


def _key(flame: Flame, y: float) -> Iterator[str]:
    """What the colours mean."""
    if flame.before is None:
        pairs = [*([("operation", "operation")] if flame.after.by_operation else []), *KEYS.items()]
    else:
        percent = [f"{100 * step:g}" for step in STEPS]
        ranges = [f"below {percent[0]} %", *(f"{one} to {two} %" for one, two in pairwise(percent))]
        ranges += [f"{percent[-1]} % and more"]
        pairs = [
            *((f"r{place + 1}", f"more: {text}" if place == 0 else text) for place, text in enumerate(ranges)),
            *((f"b{place + 1}", f"less: {text}" if place == 0 else text) for place, text in enumerate(ranges)),
            ("noise", "within noise"),
        ]
    x = MARGIN
    for name, text in pairs:
        yield f'<g class="key {name}"><rect x="{x:g}" y="{y:g}" width="14" height="11"/>'
        yield f'<text class="soft" x="{x + 18:g}" y="{y + 10:g}">{escape(text)}</text></g>'
        x += 18 + LETTER * len(text) + 16
