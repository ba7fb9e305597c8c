"""A sheet: a page that grows downwards, panel by panel, with a badge above and a legend and small print below.

All lengths are inches. A figure says what is on it; where that lies, and how high the page gets, is settled here.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from castmates.report.figures.style import (
    ALARM,
    BADGE_ID,
    COLUMN,
    GREY,
    INK,
    KEY,
    PAGE,
    SMALL,
    SMALL_LETTER,
    SOURCE,
    styled,
)
from castmates.report.results import Results
from castmates.report.text.stamps import caveat

PANELS = 12  # of a grid, at most
HIGHEST = 12.0  # of a figure, about: what is higher fits on no page
NOTE = 0.115  # a line of small print
UNDER = 0.42  # below axes: their numbers and their name
BADGE, BADGE_LINE, BADGE_LETTER = 0.26, 0.11, 0.066  # height with one line and of each further one; width of a letter
KEYS = 0.16  # a line of the legend
GROWING = 40.0  # a figure, while its panels are placed
Part = TypeVar("Part")


@dataclass(frozen=True)
class Origin:
    """What a figure's file shows of all its numbers: what counts against them, and where they come from."""

    caveat: str
    source: str = ""

    @staticmethod
    def of(numbers: "Results | Origin") -> "Origin":
        """Of a study; a comparison and a placement have their own."""
        if isinstance(numbers, Origin):
            return numbers
        platforms = ", ".join(numbers.platforms) or "no numbers"
        return Origin(caveat(numbers), f"{platforms}\N{NO-BREAK SPACE}· study {numbers.name}")


@dataclass(frozen=True)
class Room:
    """The size of each panel of a grid."""

    axes: float  # height
    above: float  # between title and axes
    below: float
    left: float
    right: float


class Sheet:
    """A figure that grows downwards; `top` is how much of it is taken."""

    def __init__(self, numbers: Results | Origin, width: float = PAGE, head: float = 0.04) -> None:
        self.origin, self.width = Origin.of(numbers), width
        self.figure = Figure(figsize=(width, GROWING))
        self.top = badge_room(self.origin.caveat, width) + head
        self._axes: list[tuple[Axes, tuple[float, float, float, float]]] = []
        self._texts: list[tuple[Text, float]] = []
        self._legends: list[tuple[Sequence[Artist], float, dict[str, Any]]] = []
        self._left_out = 0  # panels of the grid
        self._rows: list[float] = []  # the middle of each row of the grid

    def at(self, left: float, top: float, wide: float, high: float, sharex: Axes | None = None) -> Axes:
        """Axes anywhere."""
        box = (left / self.width, 1 - (top + high) / GROWING, wide / self.width, high / GROWING)
        axes = self.figure.add_axes(box, sharex=sharex)
        self._axes.append((axes, (left, top, wide, high)))
        return axes

    def beside(self, high: float, *columns: tuple[float, float], above: float = 0.0) -> list[Axes]:
        """Axes beside each other, each with its left end and its width."""
        self.top += above + high
        return [self.at(left, self.top - high, wide, high) for left, wide in columns]

    def panel(self, high: float, left: float, right: float, above: float = 0.0, sharex: Axes | None = None) -> Axes:
        """Axes from side to side, below what is there already."""
        self.top += above + high
        return self.at(left, self.top - high, self.width - left - right, high, sharex)

    def stacked(self, heights: Iterable[float], above: float, left: float, right: float) -> list[Axes]:
        """Panels below each other, each with room for its title."""
        return [self.panel(high, left, right, above) for high in heights]

    def skip(self, inches: float) -> None:
        """Leave room."""
        self.top += inches

    def text(self, left: float, top: float, words: str, **style: Any) -> None:  # noqa: ANN401 (matplotlib's)
        """Words anywhere."""
        self._texts.append((self.figure.text(left / self.width, 1 - top / GROWING, words, **style), top))

    def legend(self, keys: Sequence[Artist], columns: int = 0, **spacing: Any) -> None:  # noqa: ANN401 (matplotlib's)
        """What the marks are, in the middle below what is there already, in so many columns or as many as fit."""
        columns = columns or columns_for([key.get_label() for key in keys], self.width)
        usual = {"ncols": columns, "handletextpad": 0.4, "columnspacing": 1.3}
        self._legends.append((keys, self.top, usual | spacing))
        self.top += KEYS * math.ceil(len(keys) / columns) + 0.05

    def grid(self, titles: Sequence[str], room: Room) -> list[Axes]:
        """A panel for each title, two abreast; not more than fit on a page."""
        shown = list(titles[:PANELS])
        self._left_out = len(titles) - len(shown)
        across = min(2, len(shown))
        wide, head = self.width / across, room.above + 0.12 * max(words.count("\n") + 1 for words in shown)
        places = []
        for begin in range(0, len(shown), across):
            row = shown[begin : begin + across]
            for column, words in enumerate(row):
                self.text(column * wide + 0.1, self.top + head - room.above, words, fontsize=8, va="bottom")
            columns = [(column * wide + room.left, wide - room.left - room.right) for column in range(len(row))]
            places += self.beside(room.axes, *columns, above=head)
            self._rows.append(self.top - room.axes / 2)
            self.skip(room.below)
        return places

    def labels(self, under: str, beside: str) -> None:
        """Name the axes once for all panels of the grid."""
        for middle in self._rows:
            self.text(0.06, middle, beside, rotation=90, va="center", ha="left", ma="center", fontsize=8)
        self.text(self.width / 2, self.top, under, ha="center", va="bottom", fontsize=8)

    def finish(self, key: str = "") -> Figure:
        """Write the small print, and put everything where it belongs, now that the height of the page is known."""
        more = f"{self._left_out} more panels are in the CSV; " if self._left_out else ""
        letters = int((self.width - 0.2) / SMALL_LETTER)
        notes = {SOURCE: textwrap.wrap(self.origin.source, letters), KEY: textwrap.wrap(more + key, letters)}
        bottom = self.top + 0.13 + NOTE * sum(map(len, notes.values()))
        for keys, top, style in self._legends:
            at = (0.5, 1 - top / bottom)
            self.figure.legend(handles=list(keys), loc="upper center", bbox_to_anchor=at, borderaxespad=0, **style)
        foot = bottom - 0.05
        for name, lines in notes.items():
            if lines:
                self.text(0.1, foot, "\n".join(lines), fontsize=SMALL, color=GREY, va="bottom", gid=name)
            foot -= NOTE * len(lines)
        self.figure.set_size_inches(self.width, bottom)
        for axes, (left, top, wide, high) in self._axes:
            axes.set_position((left / self.width, 1 - (top + high) / bottom, wide / self.width, high / bottom))
        for text, top in self._texts:
            text.set_y(1 - top / bottom)
        badge(self.figure, self.origin.caveat)
        return self.figure


def drawing(
    results: Results, source: pd.DataFrame, lacking: Callable[[Results], str], draw: Callable[[], Figure]
) -> tuple[Figure, pd.DataFrame]:
    """A figure and its source data; where something is lacking, the figure says only what."""
    with styled():
        return empty_figure(why, caveat(results)) if (why := lacking(results)) else draw(), source


def empty_figure(message: str, caveat: str) -> Figure:
    """A figure that explains why there is nothing to see."""
    figure = Figure(figsize=(COLUMN, 1.2 + badge_room(caveat, COLUMN)))
    badge(figure, caveat)
    figure.text(0.5, 0.5, textwrap.fill(message, 44, break_on_hyphens=False), ha="center", va="center", color=GREY)
    return figure


def badge(figure: Figure, words: str) -> None:
    """Put what counts against the whole study into the upper right corner, where `badge_room` kept room for it."""
    if words:
        width, height = figure.get_size_inches()
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": ALARM, "linewidth": 0.7}
        figure.text(
            1 - 0.08 / width, 1 - 0.07 / height, "\n".join(_badge_lines(words, width)),
            fontsize=SMALL, fontweight="bold", color=ALARM, ha="right", va="top", bbox=box, gid=BADGE_ID,
        )  # fmt: skip


def badge_room(words: str, width: float) -> float:
    """Inches to keep at the top of a figure of this width for the badge."""
    return height_of_badge(len(_badge_lines(words, width))) if words else 0.0


def height_of_badge(lines: int) -> float:
    """Inches that a badge of so many lines takes."""
    return BADGE + BADGE_LINE * (lines - 1)


def _badge_lines(words: str, width: float) -> list[str]:
    """The badge's words in lines that fit into the width."""
    return textwrap.wrap(words, int((width - 0.25) / BADGE_LETTER), break_on_hyphens=False)


def fitting(heights: Sequence[float], around: float) -> int:
    """How many parts of these heights, from the first on, fit into a figure with so much around them; at least one."""
    total = around
    for count, height in enumerate(heights):
        total += height
        if count and total > HIGHEST:
            return count
    return len(heights)


def evenly(parts: Sequence[Part], most: int) -> list[Part]:
    """All of them or, of many, the first, the last and evenly spaced ones between."""
    if len(parts) <= most:
        return list(parts)
    return [parts[round(place * (len(parts) - 1) / max(1, most - 1))] for place in range(most)]


def columns_for(labels: Sequence[object], width: float) -> int:
    """Columns of a legend that fit into so many inches: each is as wide as the longest of its labels."""
    wide = [0.45 + 0.057 * len(str(label)) for label in labels]
    for count in range(len(wide), 1, -1):
        if sum(max(column) for column in np.array_split(wide, count)) <= width - 0.1:
            return count
    return 1


def lines_across(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Pale lines at the ticks of an axis, behind everything."""
    axes.grid(axis=axis, color="#e4e4e4", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)


def rows_of(axes: Axes, names: Sequence[str], at_zero: float | None = None, **style: Any) -> None:  # noqa: ANN401
    """Rows from above with their names at the left, if they have any, and a line where nothing is lost or gained."""
    if names:
        axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names, **style)
    without_axis(axes)
    lines_across(axes, "x")
    if at_zero is not None:
        axes.axvline(at_zero, color=GREY, linewidth=0.6, zorder=1)


def without_axis(axes: Axes) -> None:
    """Names at the left need no line and no ticks."""
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


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
