"""Draws the panels of the figure `sensitivity`: curves over ways with their intervals, and the knees at the foot."""

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.analysis.partitions.sensitivity import NOT_REACHED
from castmates.report.figures.antagonists import BASELINES, looks
from castmates.report.figures.interpolated import DOTS, is_interpolated
from castmates.report.figures.panels import NOTE, inches_of, lines_across, spread_labels
from castmates.report.figures.style import GREY, INK, SMALL, Look, squeezed
from castmates.report.figures.values import with_value
from castmates.report.results import Results
from castmates.report.text.recommendation import count_of
from castmates.report.text.words import interval, number, plain

ALONE = "alone"
TOP = 108.0  # per cent, at least
BAR, WORDS, MARK = 0.075, 0.13, 0.085  # inches of a knee at the foot, of a line of words there, of a mark before it
LETTERS = 16  # of a line beside the axes
LINES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))  # kinds of partitions
NO_KNEE = {NOT_REACHED: "not reached", TOO_FEW: TOO_FEW}
Row = dict[str, Any]
Key = tuple[str, str]  # antagonists, curve


@dataclass(frozen=True)
class Panel:
    """One lead, and some of its curves."""

    title: str
    curves: dict[Key, list[Row]]
    knees: dict[Key, Row]
    ways: int | None  # of the cache
    way_bytes: float


def looks_by_panel(panels: list[Panel], results: Results) -> list[dict[Key, Look]]:
    """Colour and marker for each curve: those of its antagonist; lines distinguish kinds of partition."""
    keys = {key for panel in panels for key in panel.curves}
    by_name = looks(results, sorted({antagonists for antagonists, _ in keys if antagonists}))
    return [{key: by_name.get(key[0], BASELINES[ALONE]) for key in panel.curves} for panel in panels]


def lines_of(keys: "list[Key]") -> dict[Key, Any]:
    """A line for each curve: whole for the first kind of partition of an antagonist, broken for its others."""
    kinds: dict[str, list[str]] = {}
    for antagonists, curve in keys:
        kinds.setdefault(antagonists, []).append(curve)
    return {key: LINES[kinds[key[0]].index(key[1]) % len(LINES)] for key in keys}


def label_of(key: Key, keys: "list[Key]") -> str:
    """`beside stream`; with the kind of partition where there are several."""
    antagonists, curve = key
    name = f"beside {plain(antagonists)}" if antagonists else ALONE
    several = sum(other[0] == antagonists for other in keys) > 1
    return f"{name}, {curve}" if several else name


def paint(axes: Axes, panel: Panel, looks: dict[Key, Look]) -> None:
    """Draw a lead's curves."""
    curves = {key: (looks[key], points) for key, points in panel.curves.items()}
    lines = lines_of(list(curves))
    knees = [(look, panel.knees[key]) for key, (look, _) in curves.items() if key in panel.knees]
    low, top, foot = bottom(panel), _top(panel), _foot_inches(knees)
    unit = (top - low) / (inches_of(axes)[1] - foot * (low > 0))  # per cent of an inch
    axes.set_ylim(low - foot * unit * (low > 0), top)
    axes.axhline(100, color=GREY, linewidth=0.6, zorder=1)
    kept = next((row["kept_pct"] for row in panel.knees.values()), 95.0)
    axes.axhline(kept, color=GREY, linewidth=0.6, linestyle=(0, (1, 2)), zorder=1)
    rows = [row for rows in panel.curves.values() for row in rows]
    most = max([*(row["lead_ways"] for row in rows), *([panel.ways] if panel.ways else [])])
    axes.set_xlim(min(row["lead_ways"] for row in rows) - 0.6, most + 0.6)
    for place, (key, (look, points)) in enumerate(curves.items()):
        _curve(axes, points, look, lines[key], (place - (len(curves) - 1) / 2) * 0.07)
    _foot(axes, knees, unit, panel.ways)
    _ticks(axes, panel, most, low)
    room = max(1, int(inches_of(axes)[1] / NOTE / len(curves)))
    names = {key: squeezed(label_of(key, list(curves)), LETTERS, room) for key in curves}
    labels = [(points[-1]["rate_pct"], names[key], look[0]) for key, (look, points) in curves.items()]
    spread_labels(axes, labels)
    if low > 0:
        axes.text(
            0.0, 0.0, "≈", transform=axes.transAxes, ha="center", va="center", fontsize=9, color=INK, rotation=90,
            bbox={"boxstyle": "square,pad=0.02", "facecolor": "white", "edgecolor": "none"}, clip_on=False,
        )  # fmt: skip


def bottom(panel: Panel) -> float:
    """Zero, unless everything lies far above it: then the axis is broken, and marked."""
    lows = [ends_of(row)[0] for rows in panel.curves.values() for row in rows]
    lows += [row["rate_pct"] for rows in panel.curves.values() for row in rows]
    least = min(low for low in lows if not math.isnan(low))
    return 10.0 * math.floor((least - 5) / 10) if least > 55 else 0.0


def _top(panel: Panel) -> float:
    """High enough for every interval."""
    ends = [ends_of(row)[1] for rows in panel.curves.values() for row in rows]
    return max([TOP, *(end + 3 for end in ends if not math.isnan(end))])


def ends_of(row: Row) -> tuple[float, float, bool]:
    """The interval to draw, and whether it covers these launches only."""
    within = math.isnan(row["rate_low"])
    return (row["within_low"], row["within_high"], True) if within else (row["rate_low"], row["rate_high"], False)


def _curve(axes: Axes, points: list[Row], look: Look, line: Any, shift: float) -> None:  # noqa: ANN401 (matplotlib's)
    colour, marker = look
    xs, ys = [row["lead_ways"] + shift for row in points], [row["rate_pct"] for row in points]
    axes.plot(xs, ys, color=colour, linewidth=0.8, linestyle=line, zorder=2)
    for x, row in zip(xs, points, strict=True):
        low, high, within = ends_of(row)
        style = DOTS if is_interpolated(row) else (0, (2, 1.2)) if within else "-"
        if not math.isnan(low):
            axes.plot([x, x], [low, high], color=colour, linewidth=1.2, linestyle=style, zorder=3)
    faces = ["white" if is_interpolated(row) else colour for row in points]
    marks = axes.scatter(xs, ys, s=9, marker=marker, c=faces, edgecolors=colour, linewidths=0.6, zorder=4)
    with_value(marks, *map(_value, points))
    shared = [(x, y) for x, y, row in zip(xs, ys, points, strict=True) if is_shared(row)]
    if shared:
        axes.scatter(
            [x for x, _ in shared],
            [y for _, y in shared],
            s=30,
            facecolors="none",
            edgecolors=colour,
            linewidths=0.6,
            zorder=4,
        )


def _value(row: Row) -> str:
    low, high, _ = ends_of(row)
    who = f"beside {plain(row['antagonists'])}" if row["antagonists"] else ALONE
    ends = "" if math.isnan(low) else f" {interval(low, high)}"
    how = " (interpolated)" if is_interpolated(row) else ""
    return f"{who}, {row['lead_ways']} ways: {number(row['rate_pct'])} %{ends}{how}"


def is_shared(row: Row) -> bool:
    """Whether something else than the lead fills some of these ways too."""
    return count_of(row["shared_ways"]) > 0


def _has_knee(row: Row) -> bool:
    return not math.isnan(count_of(row["knee_low"]))


def _foot_inches(knees: list[tuple[Look, Row]]) -> float:
    bars = sum(_has_knee(row) for _, row in knees)
    lines = len({row["verdict"] for _, row in knees if not _has_knee(row)})
    return BAR * bars + WORDS * lines + 0.04


def _foot(axes: Axes, knees: list[tuple[Look, Row]], unit: float, ways: int | None) -> None:
    """From below: a bar for each knee that is known, then a line for all those that are not, for each reason."""
    y = axes.get_ylim()[0]
    for (colour, _), row in knees:
        if _has_knee(row):
            y += BAR * unit
            _knee(axes, row, y - 0.25 * BAR * unit, colour, ways)
    inch = 1 / inches_of(axes)[0]
    for verdict, words in NO_KNEE.items():
        looks = [look for look, row in knees if not _has_knee(row) and row["verdict"] == verdict]
        if not looks:
            continue
        y += WORDS * unit
        middle, x = y - 0.4 * WORDS * unit, 0.11 * inch
        for colour, marker in looks:
            axes.scatter(
                x, middle, s=9, marker=marker, c=colour, linewidths=0, transform=axes.get_yaxis_transform(), zorder=4
            )
            x += MARK * inch
        axes.text(
            x, middle, words, transform=axes.get_yaxis_transform(), fontsize=SMALL, color=GREY, va="center", ha="left"
        )


def _knee(axes: Axes, row: Row, y: float, colour: str, ways: int | None) -> None:
    """A bar from the lower to the upper end; an arrow where there is no upper one."""
    low, high, knee = (count_of(row[name]) for name in ("knee_low", "knee_high", "knee"))
    end = high if not math.isnan(high) else float(ways or row["most_ways"]) + 0.5
    axes.plot([low, end], [y, y], color=colour, linewidth=1.0, zorder=3)
    axes.scatter([low], [y], s=16, marker="|", c=colour, linewidths=1.0, zorder=3)
    marker = "|" if not math.isnan(high) else ">"
    axes.scatter([end], [y], s=16, marker=marker, c=colour, linewidths=1.0, zorder=3, clip_on=False)
    if not math.isnan(knee):
        axes.scatter([knee], [y], s=14, marker="D", c="white", edgecolors=colour, linewidths=0.9, zorder=4)


def _ticks(axes: Axes, panel: Panel, most: int, low: float) -> None:
    step = max(1, math.ceil(most / 8))
    ticks = [ways for ways in range(0, most + 1, step) if ways >= axes.get_xlim()[0]]
    axes.set_xticks(ticks)
    axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= axes.get_ylim()[1]])
    lines_across(axes, "y")
    if math.isnan(panel.way_bytes):
        return
    top = axes.secondary_xaxis("top")
    top.set_xticks(ticks, [f"{ways * panel.way_bytes / 2**20:.3g}" for ways in ticks])
    top.tick_params(labelsize=6.5, length=2, pad=1)
    top.spines["top"].set_linewidth(0.4)
