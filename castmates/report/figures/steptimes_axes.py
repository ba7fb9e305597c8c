"""Draws the panels of the figure `steptimes`: distributions above, quantiles with their intervals below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from castmates.analysis.explanations.steps import QUANTILES
from castmates.report.figures.antagonists import BASELINES, looks
from castmates.report.figures.panels import NOTE, axes_at, columns_for, finish, legend, small_print
from castmates.report.figures.style import COLUMN, GREY, PAGE, SMALL, Look, badge_room, broken
from castmates.report.figures.values import with_value
from castmates.report.results import Results
from castmates.report.text.stamps import caveat
from castmates.report.text.words import interval, number

CURVES, LINE, GAP = 1.35, 0.085, 0.07  # inches: the distributions, a mark of the quantiles, between two quantiles
LEFT, RIGHT, HEAD, FOOT, SPACE = 0.5, 0.1, 0.32, 0.42, 0.14  # around a panel
WIDE = 2.5  # the largest over the smallest time, above which the axis is logarithmic
SHARES = [0.005, 0.01, 0.02, 0.05, *(round(0.1 * tenth, 1) for tenth in range(1, 10)), 0.95, 0.98, 0.99, 0.995]
BESIDE = "beside "
TICKS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Curve:
    """A lead's steps in one scene."""

    label: str
    scene: str
    launches: pd.DataFrame  # a row per launch that is drawn
    values: np.ndarray  # their quantiles in ms, a row per launch
    pooled: np.ndarray  # time and share
    marks: list[dict[str, Any]]  # rows of the table of latencies


@dataclass(frozen=True)
class Panel:
    """A lead on one platform."""

    title: str
    member: str
    platform: str
    step: str  # what it covers: step, 4096 load
    curves: list[Curve]


def figure_of(panels: Sequence[Panel], results: Results) -> Figure:
    """A panel per lead, two beside each other."""
    across = min(2, len(panels))
    width = PAGE if across > 1 else COLUMN
    looks = _looks(panels, results)
    marks = [_marks_height(panel) for panel in panels]
    rows = [max(marks[at : at + across]) for at in range(0, len(panels), across)]
    columns = columns_for(looks, width - 0.2, key=0.42, most=len(looks))
    notes = small_print(width, "", results)
    top, bottom = badge_room(caveat(results), width), 0.12 + NOTE * len(notes) + 0.16 * math.ceil(len(looks) / columns)
    height = top + sum(HEAD + CURVES + SPACE + row + FOOT for row in rows) + bottom
    figure = Figure(figsize=(width, height))
    y = height - top
    for line, row in enumerate(rows):
        y -= HEAD + CURVES
        for column, panel in enumerate(panels[line * across : (line + 1) * across]):
            x = column * width / across
            size = width / across - LEFT - RIGHT
            upper, own = axes_at(figure, x + LEFT, y, size, CURVES), _marks_height(panel)
            lower = axes_at(figure, x + LEFT, y - SPACE - own, size, own, sharex=upper)
            _curves(upper, panel, looks, width / across)
            _marks(lower, panel, looks)
            _axis(upper, lower, panel)
        y -= SPACE + row + FOOT
    legend(figure, _keys(looks), bottom / height, columns, handletextpad=0.4, columnspacing=1.2)
    return finish(figure, notes, results)


def _looks(panels: Sequence[Panel], results: Results) -> dict[str, Look]:
    """Colour and marker of every condition, the same in all panels: by the first word where there is no antagonist."""
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    beside = looks(results, [label.removeprefix(BESIDE) for label in labels if label.startswith(BESIDE)])
    without = {label: BASELINES[label.partition(" ")[0]] for label in labels if not label.startswith(BESIDE)}
    return without | {f"{BESIDE}{name}": look for name, look in beside.items()}


def _marks_height(panel: Panel) -> float:
    return len(QUANTILES) * (LINE * len(panel.curves) + GAP)


def _curves(axes: Axes, panel: Panel, looks: dict[str, Look], room: float) -> None:
    for curve in panel.curves:
        colour = looks[curve.label][0]
        for values in curve.values:
            axes.plot(values, SHARES, color=colour, linewidth=0.5, alpha=0.3, zorder=2)
        axes.plot(curve.pooled[:, 0], curve.pooled[:, 1], color=colour, linewidth=1.3, zorder=3)
    axes.set_ylim(0, 1.01)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    axes.set_ylabel("steps (%)", labelpad=1)
    axes.tick_params(axis="x", labelbottom=False)
    axes.set_title(broken(panel.title, int((room - 0.3) / 0.066)), loc="left", pad=4)


def _marks(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    place, ticks = 0.0, []
    for turn, quantile in enumerate(QUANTILES):
        begin = place
        place += LINE * len(panel.curves) + GAP
        ticks.append((begin + place) / 2)
        if turn % 2:
            axes.axhspan(begin, place, color="#f3f3f3", linewidth=0, zorder=0)
        drawn = 0
        for line, curve in enumerate(panel.curves):
            y = begin + GAP / 2 + LINE * (line + 0.5)
            colour, marker = looks[curve.label]
            for mark in (row for row in curve.marks if row["quantile"] == quantile and not row["refused"]):
                drawn += 1
                axes.plot([mark["ms_low"], mark["ms_high"]], [y, y], color=colour, linewidth=1.2, zorder=2)
                (point,) = axes.plot([mark["ms"]], [y], marker, color=colour, markersize=3, zorder=3)
                with_value(point, _value(panel, curve, quantile, mark))
        if not drawn:
            axes.text(
                0.5, ticks[-1], "too few steps", transform=axes.get_yaxis_transform(),
                ha="center", va="center", fontsize=SMALL, color=GREY,
            )  # fmt: skip
    axes.set_ylim(place, 0)
    axes.set_yticks(ticks, list(QUANTILES))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"ms per {panel.step}", labelpad=1)


def _value(panel: Panel, curve: Curve, quantile: str, mark: dict[str, Any]) -> str:
    ends = "" if math.isnan(mark["ms_low"]) else f" {interval(mark['ms_low'], mark['ms_high'], 2)}"
    return f"{panel.title}, {curve.label}, {quantile}: {number(mark['ms'], 2)} ms{ends}"


def _axis(upper: Axes, lower: Axes, panel: Panel) -> None:
    """One axis of time for both: all that is drawn of the lines and bars, in few ticks."""
    times = [curve.values.ravel() for curve in panel.curves]
    times += [np.array([m["ms"], m["ms_low"], m["ms_high"]], dtype=float) for c in panel.curves for m in c.marks]
    every = np.concatenate(times)
    every = every[np.isfinite(every) & (every > 0)]
    low, high = float(every.min()), float(every.max())
    if high / low < WIDE:
        room = 0.04 * (high - low) or 0.05 * high
        upper.set_xlim(low - room, high + room)
        lower.locator_params(axis="x", nbins=5)
        return
    room = (high / low) ** 0.04
    upper.set_xscale("log")
    upper.set_xlim(low / room, high * room)
    lower.xaxis.set_major_locator(FixedLocator(ticks(low, high)))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    lower.xaxis.set_minor_locator(NullLocator())


def ticks(low: float, high: float) -> list[float]:
    """At most six readable values on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in (TICKS, (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        values = [float(f"{step * 10.0**power:.3g}") for power in powers for step in steps]
        inside = [value for value in values if low <= value <= high]
        if len(inside) <= 6:
            return inside
    return inside[:: math.ceil(len(inside) / 6)]


def _keys(looks: dict[str, Look]) -> list[Line2D]:
    return [
        Line2D([], [], color=colour, marker=marker, markersize=3.5, linewidth=1.3, label=label)
        for label, (colour, marker) in looks.items()
    ]
