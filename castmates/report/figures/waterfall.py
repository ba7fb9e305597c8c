"""The figure `waterfall`: from a step of the lead alone to one beside others, operation by operation.

The parts add up exactly: what runs at the same moment shares it, and what no operation accounts for is a part too.
"""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from castmates.analysis.operations.effects import STEP
from castmates.report.figures import operations
from castmates.report.figures.marks import bar, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, lines_across, without_axis
from castmates.report.figures.style import GREY, INK, SMALL, squeezed
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import counted, number, plain, units

FIGURE = {"title": "Where the loss of a step comes from", "part": "operations", "place": 110, "needs": "PROFILE"}
PARTS = 9  # operations that a panel names; the others are one part
BESIDE = 2  # antagonists of a lead: those that cost most
LEFT, RIGHT, LINE, HEAD = 2.75, 0.45, 0.19, 0.42  # inches
LONGER, SHORTER, TOTAL = "#b2182b", "#2166ac", "#8c8c8c"
Row = dict[str, Any]
Lines = list[tuple[str, float, float]]  # name, difference in ms and half of its interval, of each


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    table = results.operation_effects
    return drawing(results, table, lacking, lambda: sheet(table, _panels(table, results), LEFT, results))


def lacking(results: Results) -> str:
    if operations.lacking(results):
        return f"No step of the study {results.name} was traced alone and beside others (castmates help operations)."
    return ""


def caption(results: Results) -> str:
    return (
        "From a step of the lead alone to one beside an antagonist, in ms: what each operation adds or takes away. "
        "These add up to the difference. Lines at their ends: 95 % t intervals between launches "
        f"({units(results.operation_effects['launches'])}). "
    )


def alternative(results: Results) -> str:
    parts = [
        f"{plain(step['member'])} beside {plain(step['mix'].partition('+')[2])}: {number(step['alone_ms'], 2)} to "
        f"{number(step['ms'], 2)} ms"
        for step, _ in _panels(results.operation_effects, results)
    ]
    return f"Steps from alone to beside others: {'; '.join(parts)}."


def _panels(table: pd.DataFrame, results: Results) -> list[tuple[Row, Lines]]:
    """Of each lead the antagonists that cost most: the row of the step, and those of its parts, the largest first."""
    found = []
    for _, rows in operations.panels(table, results):
        steps = rows[rows["group"] == STEP].sort_values("difference_ms", ascending=False)
        for step in records(steps.head(BESIDE)):
            own = records(rows[(rows["mix"] == step["mix"]) & (rows["group"] != STEP)])
            found.append((step, _lines(sorted(own, key=lambda row: -abs(row["difference_ms"])))))
    return found


def sheet(table: pd.DataFrame, found: Sequence[tuple[Row, Lines]], left: float, results: Results) -> Figure:
    """A panel for each pair of a lead and an antagonist: the row of its step, and what adds up to the difference."""
    heights = [LINE * (len(lines) + 2) for _, lines in found]
    count = fitting([HEAD + height for height in heights], around=1.0)
    page = Sheet(results)
    for axes, (step, lines) in zip(page.stacked(heights[:count], HEAD, left, RIGHT), found, strict=False):
        _panel(axes, step, lines)
        beside = plain(step["mix"].partition("+")[2])
        axes.set_title(f"{plain(step['member'])} beside {beside}, traced", loc="left", pad=4, fontweight="bold")
    axes.set_xlabel("ms of a step")
    page.skip(UNDER)
    key = "grey: whole steps, from their beginning at 0, which is not drawn; red: longer than alone; blue: shorter"
    if (table.groupby("member")["mix"].nunique() > BESIDE).any():
        key += f"; of each lead the {BESIDE} antagonists that cost most"
    key += f"; not drawn: {counted(len(found) - count, 'mix')}; the CSV has all" if count < len(found) else ""
    return page.finish(key)


def _lines(parts: list[Row]) -> Lines:
    """Name, difference and half of its interval; small parts together, without an interval."""
    lines = [
        (operation_words(row["group"]), row["difference_ms"], (row["difference_high"] - row["difference_low"]) / 2)
        for row in parts[:PARTS]
    ]
    if rest := parts[PARTS:]:
        lines.append((f"{len(rest)} smaller ones", sum(row["difference_ms"] for row in rest), math.nan))
    return lines


def _panel(axes: Axes, step: Row, lines: Lines) -> None:
    """Whole steps alone and beside others, and between them what each line adds: name, ms, half of its interval."""
    at, last, ends = step["alone_ms"], len(lines) + 1, [step["alone_ms"], step["ms"]]
    bars = [(0.0, at, TOTAL, f"alone: {number(at, 2)} ms", number(at, 2))]
    for y, (name, difference, half) in enumerate(lines, start=1):
        words, sign = f"{name}: {number(difference, 3)} ms", "+" if difference > 0 else ""
        begin, colour = min(at, at + difference), LONGER if difference > 0 else SHORTER
        bars.append((begin, abs(difference), colour, words, f"{sign}{number(difference, 2)}"))
        axes.plot([at, at], [y - 0.9, y + 0.1], color=GREY, linewidth=0.5)
        at += difference
        bar(axes, y + 0.4, at - half, at + half, INK, width=0.8, zorder=4)
        ends += [at, *(end for end in (at - half, at + half) if not math.isnan(end))]
    bars.append((0.0, step["ms"], TOTAL, f"beside others: {number(step['ms'], 2)} ms", number(step["ms"], 2)))
    for y, (begin, wide, colour, words, value) in enumerate(bars):
        rectangle = Rectangle((begin, y + 0.15), wide, 0.7, facecolor=colour, linewidth=0, zorder=3)
        axes.add_patch(with_value(rectangle, words))
        axes.text(1.01, y + 0.5, value, transform=axes.get_yaxis_transform(), va="center", fontsize=SMALL)
    room = max(max(ends) - min(ends), 1e-9)
    axes.set_xlim(max(0.0, min(ends) - 0.25 * room), max(ends) + 0.08 * room)
    axes.set_ylim(last + 1, 0)
    names = ["alone", *(squeezed(name, operations.LETTERS, 1) for name, _, _ in lines), "beside others"]
    axes.set_yticks([y + 0.5 for y in range(len(names))], names, fontsize=SMALL)
    without_axis(axes)
    lines_across(axes, "x")
