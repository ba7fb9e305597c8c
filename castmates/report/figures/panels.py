"""Panels on a page: their places, titles, notes and badge; and labels beside curves that do not overlap."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castmates.report.figures.style import GREY, PAGE, badge, badge_room

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 12
HIGHEST = 12.0  # inches of a figure, about: what is higher fits on no page
LINE = 0.115  # inches of a line of small print
SMALL = 6.5


@dataclass(frozen=True)
class Grid:
    """Inches of one panel."""

    width: float
    axes: float  # height of its axes
    above: float  # between title and axes
    below: float
    left: float
    right: float


@dataclass(frozen=True)
class Drawn:
    """A figure with empty panels."""

    figure: "Figure"
    places: "list[Axes]"
    room: Grid
    foot: float

    def labels(self, under: str, beside: str) -> None:
        """Name the axes once for all panels."""
        width, height = self.figure.get_size_inches()
        self.figure.text(0.5, (self.foot + 0.02) / height, under, ha="center", va="bottom", fontsize=8)
        for axes in self.places:
            place = axes.get_position()
            if place.x0 * width <= self.room.left + 1e-6:  # the first of its line
                middle = (place.y0 + place.y1) / 2
                self.figure.text(
                    0.06 / width, middle, beside, rotation=90, va="center", ha="left", ma="center", fontsize=8
                )


def drawn_grid(titles: Sequence[str], notes: str, caveat: str, room: Grid) -> Drawn:
    """Places for as many panels as have a title; two stand beside each other where there are several."""
    from matplotlib.figure import Figure

    shown = list(titles[:PANELS])
    across = min(2, len(shown))
    down = math.ceil(len(shown) / across)
    width = room.width if across == 1 else PAGE
    more = f"{len(titles) - PANELS} more panels are in the CSV; " if len(titles) > PANELS else ""
    lines = textwrap.wrap(more + notes, int((width - 0.2) / 0.055))
    foot = 0.22 + LINE * len(lines)
    head = 0.02 + badge_room(caveat, width)
    title = 0.12 * max(one.count("\n") + 1 for one in shown)
    row = title + room.above + room.axes + room.below
    height = head + down * row + foot
    figure = Figure(figsize=(width, height))
    panel = width / across
    places = []
    for place, words in enumerate(shown):
        line, column = divmod(place, across)
        bottom = height - head - line * row - title - room.above - room.axes
        axes = figure.add_axes(
            ((column * panel + room.left) / width, bottom / height,
             (panel - room.left - room.right) / width, room.axes / height)
        )  # fmt: skip
        top = (bottom + room.axes + room.above) / height
        figure.text((column * panel + 0.1) / width, top, words, fontsize=8, va="bottom", ha="left")
        places.append(axes)
    figure.text(0.1 / width, 0.05 / height, "\n".join(lines), fontsize=SMALL, color=GREY, va="bottom")
    badge(figure, caveat)
    return Drawn(figure, places, room, foot)


def fitting(heights: Sequence[float], around: float) -> int:
    """How many parts of these heights, from the first on, fit into a figure with so much around them; at least one."""
    total = around
    for count, height in enumerate(heights):
        total += height
        if count and total > HIGHEST:
            return count
    return len(heights)


def inches_of(axes: "Axes") -> tuple[float, float]:
    """How wide and how high axes are."""
    figure, place = axes.get_figure(root=True), axes.get_position()
    wide, high = figure.get_size_inches() if figure is not None else (1.0, 1.0)
    return place.width * wide, place.height * high


def spread_labels(axes: "Axes", labels: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) to the right of the axes, each as near to its y as the others let it."""
    low, high = axes.get_ylim()
    unit = (high - low) / inches_of(axes)[1]
    ordered = sorted(labels, key=lambda one: one[0])
    heights = [(text.count("\n") + 1) * LINE * unit for _, text, _ in ordered]
    centres = spaced([y for y, _, _ in ordered], heights, low, high)
    for (y, text, colour), centre in zip(ordered, centres, strict=True):
        axes.annotate(
            text, xy=(1.0, y), xycoords=("axes fraction", "data"), xytext=(1.035, centre), fontsize=6.5, color=colour,
            textcoords=("axes fraction", "data"), va="center", ha="left", annotation_clip=False, linespacing=1.15,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4, "shrinkA": 0, "relpos": (0, 0.5)},
        )  # fmt: skip


def spaced(centres: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Ascending centres moved apart so that boxes of these heights do not overlap, inside the ends if they fit."""
    found: list[float] = []
    edge = low
    for centre, height in zip(centres, heights, strict=True):
        found.append(max(centre, edge + height / 2))
        edge = found[-1] + height / 2
    edge = high
    for place in range(len(found) - 1, -1, -1):
        found[place] = min(found[place], edge - heights[place] / 2)
        edge = found[place] - heights[place] / 2
    return found
