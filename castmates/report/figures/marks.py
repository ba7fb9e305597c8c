"""Marks with their intervals, their keys in the legend, and the words that the page shows where they are pointed at.

These words travel as the mark's `gid`, the only thing that matplotlib writes beside a mark into an SVG.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from castmates.report.figures.style import PREFIX, Look
from castmates.report.text.words import Row

BETWEEN = " \N{BROKEN BAR} "
WITHIN_LAUNCH: LineStyleType = (0, (2, 1.2))  # dashes of an interval that covers these launches only
Mark = TypeVar("Mark", bound=Artist)


def with_value(mark: Mark, *words: str) -> Mark:
    """The mark with what it is; of a collection of points with that of each point."""
    mark.set_gid(PREFIX + BETWEEN.join(words))
    return mark


def values_of(identifier: str) -> Sequence[str]:
    """The words behind an identifier; none where it is another one."""
    return identifier.removeprefix(PREFIX).split(BETWEEN) if identifier.startswith(PREFIX) else ()


def ends_of(row: Row, name: str) -> tuple[float, float, bool]:
    """The interval to draw, and whether it covers these launches only: there were too few for another one."""
    within = math.isnan(row[f"{name}_low"])
    low, high = ("within_low", "within_high") if within else (f"{name}_low", f"{name}_high")
    return row[low], row[high], within


def dot(
    axes: Axes, x: float, y: float, look: Look, words: str, hollow: bool = False, size: float = 4.0, zorder: float = 4
) -> None:
    """A mark in its colour, which says what it is."""
    colour, marker = look
    face = "white" if hollow else colour
    (mark,) = axes.plot(
        [x], [y], marker, color=colour, markerfacecolor=face, markersize=size, linestyle="", zorder=zorder
    )
    with_value(mark, words)


def bar(
    axes: Axes, place: float, low: float, high: float, colour: str, *,
    width: float = 1.2, line: LineStyleType = "-", upright: bool = False, zorder: float = 3,
) -> None:  # fmt: skip
    """The interval of a mark, lying or upright; nothing where there is none."""
    if not math.isnan(low):
        ends, at = [low, high], [place, place]
        x, y = (at, ends) if upright else (ends, at)
        axes.plot(x, y, color=colour, linewidth=width, linestyle=line, zorder=zorder)


def legend_key(
    label: str, look: Look, *, hollow: bool = False, size: float = 4.5, line: LineStyleType = "", width: float = 1.0
) -> Line2D:
    """What a mark is, in the legend; with its line, where it has one."""
    colour, marker = look
    face = "white" if hollow else colour
    return Line2D(
        [], [], color=colour, marker=marker, markersize=size, markerfacecolor=face, linestyle=line, linewidth=width,
        label=label,
    )  # fmt: skip
