"""Panels on a page: their places, titles, notes and badge; and labels beside curves that do not overlap."""

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures.style import (
    GREY,
    INK,
    PAGE,
    SMALL,
    SMALL_LETTER,
    badge,
    badge_room,
    empty_figure,
    stamp,
    styled,
)
from castmates.report.results import Results
from castmates.report.text.stamps import caveat

PANELS = 12
HIGHEST = 12.0  # inches of a figure, about: what is higher fits on no page
NOTE = 0.115  # inches of a line of small print
KEY, SOURCE = "key", "source"  # what the two parts of the small print are called in the SVG


@dataclass(frozen=True)
class Origin:
    """What a figure's file shows of all its numbers: what counts against them, and where they come from."""

    caveat: str
    source: str = ""

    @staticmethod
    def of(results: "Results | Origin") -> "Origin":
        """Of a study; a comparison has its own."""
        if isinstance(results, Origin):
            return results
        return Origin(caveat(results), stamp(results.platforms, results.name))


@dataclass(frozen=True)
class SmallPrint:
    """Lines at the foot of a figure: the key to its marks, and where its numbers come from."""

    key: list[str]
    source: list[str]

    def __len__(self) -> int:
        return len(self.key) + len(self.source)


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

    figure: Figure
    places: list[Axes]
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


def drawing(
    results: Results, source: pd.DataFrame, lacking: Callable[[Results], str], draw: Callable[[], Figure]
) -> tuple[Figure, pd.DataFrame]:
    """A figure and its source data; where something is lacking, the figure says only what."""
    with styled():
        return empty_figure(why, caveat(results)) if (why := lacking(results)) else draw(), source


def drawn_grid(titles: Sequence[str], key: str, results: Results | Origin, room: Grid) -> Drawn:
    """Places for as many panels as have a title; two stand beside each other where there are several."""
    shown = list(titles[:PANELS])
    across = min(2, len(shown))
    down = math.ceil(len(shown) / across)
    width = room.width if across == 1 else PAGE
    more = f"{len(titles) - PANELS} more panels are in the CSV; " if len(titles) > PANELS else ""
    notes = small_print(width, more + key, results)
    foot = 0.22 + NOTE * len(notes)
    head = 0.02 + badge_room(Origin.of(results).caveat, width)
    title = 0.12 * max(words.count("\n") + 1 for words in shown)
    row = title + room.above + room.axes + room.below
    height = head + down * row + foot
    figure = Figure(figsize=(width, height))
    panel = width / across
    places = []
    for place, words in enumerate(shown):
        line, column = divmod(place, across)
        bottom = height - head - line * row - title - room.above - room.axes
        axes = axes_at(figure, column * panel + room.left, bottom, panel - room.left - room.right, room.axes)
        top = (bottom + room.axes + room.above) / height
        figure.text((column * panel + 0.1) / width, top, words, fontsize=8, va="bottom", ha="left")
        places.append(axes)
    finish(figure, notes, results)
    return Drawn(figure, places, room, foot)


def small_print(width: float, key: str, results: Results | Origin) -> SmallPrint:
    """What stands at the foot of a figure so wide."""
    letters = int((width - 0.2) / SMALL_LETTER)
    return SmallPrint(textwrap.wrap(key, letters), textwrap.wrap(Origin.of(results).source, letters))


def finish(figure: Figure, notes: SmallPrint, results: Results | Origin) -> Figure:
    """Write the small print at the foot, and what counts against the whole study into the corner."""
    width, height = figure.get_size_inches()
    below = {SOURCE: 0.05, KEY: 0.05 + NOTE * len(notes.source)}
    for name, lines in ((SOURCE, notes.source), (KEY, notes.key)):
        if lines:
            figure.text(
                0.1 / width, below[name] / height, "\n".join(lines), fontsize=SMALL, color=GREY, va="bottom", gid=name
            )
    badge(figure, Origin.of(results).caveat)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, wide: float, high: float, sharex: Axes | None = None) -> Axes:
    """Axes at a place in inches, from the lower left corner of the figure."""
    width, height = figure.get_size_inches()
    return figure.add_axes((left / width, bottom / height, wide / width, high / height), sharex=sharex)


def stacked(
    heights: Sequence[float], above: float, left: float, right: float, top: float, foot: float
) -> tuple[Figure, list[Axes]]:
    """A page of panels below each other, each so high, with so much above it."""
    height = top + sum(above + high for high in heights) + foot
    figure, y, places = Figure(figsize=(PAGE, height)), height - top, []
    for high in heights:
        y -= above + high
        places.append(axes_at(figure, left, y, PAGE - left - right, high))
    return figure, places


def beside_each_other(count: int) -> tuple[int, int]:
    """How many panels stand across and how many down: up to three abreast, four as a square."""
    across = 2 if count == 4 else min(3, count)
    return across, math.ceil(count / across)


def sharing(figure: Figure, count: int, left: float, top: float, bottom: float, between: float) -> list[Axes]:
    """So many panels that share the axis beside them; `between` two rows, as a part of their height."""
    across, down = beside_each_other(count)
    width, height = figure.get_size_inches()
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    figure.subplots_adjust(
        left=left / width, right=1 - 0.12 / width, top=1 - top / height, bottom=bottom / height, hspace=between,
        wspace=0.1,
    )  # fmt: skip
    places = [axes for line in grid for axes in line]
    for axes in places[count:]:
        axes.remove()
    return places[:count]


def columns_for(labels: Iterable[object], width: float, key: float = 0.4, letter: float = 0.062, most: int = 4) -> int:
    """Columns of a legend that fit into so many inches, where a key and a letter take so many."""
    return max(1, min(most, int(width / (key + letter * max(len(str(label)) for label in labels)))))


def legend(figure: Figure, keys: Sequence[Artist], top: float, columns: int, **spacing: float) -> None:
    """The legend in the middle of a figure, below a height that is a part of the figure's."""
    usual = {"handletextpad": 0.2, "columnspacing": 1.4}
    figure.legend(handles=list(keys), loc="upper center", bbox_to_anchor=(0.5, top), ncols=columns, **usual | spacing)


def lines_across(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Pale lines at the ticks of an axis, behind everything."""
    axes.grid(axis=axis, color="#e4e4e4", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)


def without_axis(axes: Axes) -> None:
    """Names at the left need no line and no ticks."""
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def fitting(heights: Sequence[float], around: float) -> int:
    """How many parts of these heights, from the first on, fit into a figure with so much around them; at least one."""
    total = around
    for count, height in enumerate(heights):
        total += height
        if count and total > HIGHEST:
            return count
    return len(heights)


def inches_of(axes: Axes) -> tuple[float, float]:
    """How wide and how high axes are."""
    figure, place = axes.get_figure(root=True), axes.get_position()
    wide, high = figure.get_size_inches() if figure is not None else (1.0, 1.0)
    return place.width * wide, place.height * high


def spread_labels(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) to the right of the axes, each as near to its y as the others let it."""
    low, high = axes.get_ylim()
    unit = (high - low) / inches_of(axes)[1]
    ordered = sorted(labels, key=lambda label: label[0])
    heights = [(text.count("\n") + 1) * NOTE * unit for _, text, _ in ordered]
    centres = spaced([y for y, _, _ in ordered], heights, low, high)
    for (y, text, colour), centre in zip(ordered, centres, strict=True):
        axes.annotate(
            text, xy=(1.0, y), xycoords=("axes fraction", "data"), xytext=(1.05, centre), fontsize=6.5, color=INK,
            textcoords=("axes fraction", "data"), va="center", ha="left", annotation_clip=False, linespacing=1.15,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 1.3, "shrinkA": 0, "relpos": (0, 0.5)},
        )  # fmt: skip


def spaced(centres: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Ascending centres moved apart so that boxes of these heights do not overlap, inside the ends if they fit."""
    moved: list[float] = []
    edge = low
    for centre, height in zip(centres, heights, strict=True):
        moved.append(max(centre, edge + height / 2))
        edge = moved[-1] + height / 2
    edge = high
    for place in range(len(moved) - 1, -1, -1):
        moved[place] = min(moved[place], edge - heights[place] / 2)
        edge = moved[place] - heights[place] / 2
    return moved
