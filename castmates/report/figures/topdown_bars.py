"""Bars of Top-Down: scenes below each other, level 1 side by side in each, and what changed most beside it."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED
from castmates.report.figures.antagonists import beside, other_looks
from castmates.report.figures.panels import NOTE, finish, fitting, legend, small_print, stacked, without_axis
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, badge_room, broken
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, number, plain
from castmates.study.spec import UNMANAGED
from castmates.study.topdown_tree import children, of_level

LEFT, RIGHT = 1.5, 1.75  # inches beside the bars
LINE, HEAD = 0.27, 0.3  # inches of one scene, above a panel
LAST = "#9a9a9a"  # of the last category of level 1, what none of the others has
# Of each family of level 2 one is hatched; the other is what remains.
HATCHED = ("Fetch_Latency", "Branch_Mispredicts", "Heavy_Operations", "Retiring_Microcode", "Memory_Bound")
_ON_HATCH = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
Row = dict[str, Any]


class Panel(NamedTuple):
    """The scenes of one program, or of one phase of its step."""

    title: str
    rows: pd.DataFrame


def bars(panels: Sequence[Panel], change: pd.DataFrame, what: str, results: Results) -> Figure:
    """Draw as many panels as fit; `what` the others are is named below."""
    count = fitting([HEAD + _height(panel.rows) for panel in panels], around=1.5)
    panels, more = panels[:count], len(panels) - count
    table = pd.concat([panel.rows for panel in panels])
    *names, last = of_level(1)
    colours = {name: look[0] for name, look in other_looks(results, names).items()} | {last: LAST}
    key = _key(table, change, results) + (f"; {counted(more, f'more {what}')} in the CSV" if more else "")
    notes = small_print(PAGE, key, results)
    foot = 0.95 + NOTE * len(notes)
    heights = [_height(panel.rows) for panel in panels]
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, 0.08 + badge_room(caveat(results), PAGE), foot)
    for axes, panel in zip(places, panels, strict=True):
        _panel(axes, panel, change, colours, is_last=panel is panels[-1])
    keys = _keys(table, colours)
    top = (foot - 0.45) / figure.get_figheight()
    legend(figure, keys, top, min(3, len(keys)), handletextpad=0.4, columnspacing=1.2)
    return finish(figure, notes, results)


def _height(rows: pd.DataFrame) -> float:
    """Room for a panel's bars, and for the longest name beside one."""
    names = [_label(mix) for mix, _ in _scenes(rows)]
    return len(names) * max(LINE, *(0.05 + 0.11 * (name.count("\n") + 1) for name in names))


def _label(mix: str) -> str:
    return broken(f"beside {beside_whom(mix)}", 24) if mix else "alone"


def _scenes(rows: pd.DataFrame) -> list[tuple[str, dict[str, Row]]]:
    """Each scene's shares by category, alone first."""
    return [
        (str(mix), {row["metric"]: row for row in records(group)})
        for (_, mix), group in rows.groupby(["kind", "mix"], sort=False)
    ]


def _panel(axes: Axes, panel: Panel, change: pd.DataFrame, colours: dict[str, str], is_last: bool) -> None:
    rows = panel.rows
    first = records(rows)[0]
    ticks = []
    for y, (mix, shares) in enumerate(_scenes(rows)):
        ticks.append(_label(mix))
        _bar(axes, y, shares, colours)
        mine = [row for row in records(change) if _is_of(row, first, mix)]
        axes.text(102, y, _words(mine) if mix else "", va="center", ha="left", fontsize=SMALL, color=INK)
    axes.set_yticks(range(len(ticks)), ticks)
    axes.set_ylim(len(ticks) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    without_axis(axes)
    axes.set_title(panel.title, loc="left", pad=4, fontweight="bold")
    if is_last:
        axes.set_xlabel("per cent of the processor's slots")
    else:
        axes.tick_params(axis="x", labelbottom=False)


def _bar(axes: Axes, y: float, shares: dict[str, Row], colours: dict[str, str]) -> None:
    """One scene: the categories of level 1 beside each other, what is known of level 2 hatched within them."""
    at = 0.0
    for name, colour in colours.items():
        if name not in shares:
            continue
        row = shares[name]
        width = max(row["share"], 0.0)
        pale = 0.5 if row["running"] < FULLY_COUNTED else 1.0
        (bar,) = axes.barh(y, width, left=at, height=0.68, color=colour, alpha=pale, linewidth=0)
        with_value(bar, f"{name.replace('_', ' ')}: {number(row['share'])} % of the slots")
        below = {child: shares[child]["share"] for child in children(name) if child in shares}
        marked = [child for child in below if child in HATCHED]
        if marked and sum(below.values()) > 0:
            # Levels may come from different rounds: the part is drawn as large as it is among its siblings.
            part = width * max(below[marked[0]], 0.0) / sum(below.values())
            axes.barh(y, part, left=at, height=0.68, color="none", edgecolor="white", hatch="/////", linewidth=0)
        if width >= 7:
            axes.text(
                at + width / 2, y, f"{row['share']:.0f}", va="center", ha="center", fontsize=SMALL, bbox=_ON_HATCH
            )
        at += width


def _is_of(row: Row, first: Row, mix: str) -> bool:
    same = all(row[key] == first[key] for key in ("platform", "lead", "member", "phase"))
    return same and row["mix"] == mix and row["partition"] == UNMANAGED


def _words(change: list[Row]) -> str:
    """The category of level 1 that changed most, in points, and what of level 2 did."""
    lines = []
    for level in (1, 2):
        of = [row for row in change if row["level"] == level]
        if of:
            lines.append(change_words(max(of, key=lambda row: abs(row["points"]))))
    return "\n".join(lines)


def change_words(row: Row) -> str:
    """A category and by how much it changed, in points, with its interval."""
    low, high = ("points_low", "points_high") if not math.isnan(row["points_low"]) else ("within_low", "within_high")
    name = row["metric"].replace("_", " ")
    sign = "+" if row["points"] >= 0 else ""
    return f"{name} {sign}{number(row['points'])} {interval(row[low], row[high])}".strip()


def _keys(table: pd.DataFrame, colours: dict[str, str]) -> list[Patch]:
    there = set(table["metric"])
    keys = [Patch(facecolor=colour, label=name.replace("_", " ")) for name, colour in colours.items() if name in there]
    marked = [name.replace("_", " ") for name in HATCHED if name in there]
    if marked:
        label = "of which " + ", ".join(marked)
        keys.append(Patch(facecolor=GREY, edgecolor="white", hatch="/////", linewidth=0, label=label))
    return keys


def _key(table: pd.DataFrame, change: pd.DataFrame, results: Results) -> str:
    parts = ["right: the largest change against alone, in points, with its 95 % interval"] if len(change) else []
    if len(change):
        within = change["points_low"].isna().any()
        parts.append("within launch where there are fewer than three launches" if within else "between launches")
    if (table["running"] < FULLY_COUNTED).any():
        parts.append("pale: counted for part of the time only, as the counters were lent out in turn, and in no change")
    if results.partitioned:
        parts.append("mixes under partitions are in the CSV")
    return "; ".join(parts)


def beside_whom(mix: str) -> str:
    """The antagonists of a mix."""
    return beside(mix) or plain(mix)
