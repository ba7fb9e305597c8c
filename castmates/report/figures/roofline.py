"""The figure `roofline`: what operations reach alone and beside antagonists, under the roofs of the lead's CPUs.

The work of an operation is the same in all scenes, so that its points lie above each other: beside others they sink.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from castmates.analysis.operations.primitives import ESTIMATED
from castmates.report.figures.antagonists import looks as looks_of
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.marks import dot, legend_key
from castmates.report.figures.sheet import Sheet, drawing, fitting, lines_across
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, Look, squeezed
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import counted, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {
    "title": "What operations reach of what is attainable",
    "part": "operations",
    "place": 140,
    "needs": "PRIMITIVES",
}
DRAWN = 12  # operations of a lead
BESIDE = 4  # antagonists
LEFT, WIDE, HIGH, HEAD, BELOW = 0.62, 3.5, 2.6, 0.4, 0.5  # inches
LETTERS = 44  # of an operation's name
SPACE = 1.6  # to each side of what is drawn, as a ratio
NEAR, APART = 1.1, 1.07  # ratios of intensities that are nearly one, and by which these are set apart
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.roofline, lacking, lambda: _figure(results.roofline, results))


def lacking(results: Results) -> str:
    if len(_shown(results.roofline)):
        return ""
    return (
        f"No operation of the study {results.name} has work that is known in traces of the lead alone "
        "(castmates help primitives)."
    )


def caption(results: Results) -> str:
    return (
        "What operations reach, hollow alone and filled beside an antagonist, under measured roofs. Bytes are those of "
        "operands, a lower bound: points may lie further left, and above the memory's roof where caches serve them. "
        f"{_how(results.roofline)}, 95 % t intervals between launches "
        f"({units(results.roofline['launches'])}). "
    )


def alternative(results: Results) -> str:
    table = results.roofline
    alone = table[(table["kind"] == "alone") & (table["partition"] == UNMANAGED)]
    parts = [
        f"{operation_words(row['operation'] + ':' + row['type'])} of {plain(row['member'])}: "
        f"{number(row['gflops'])} GFLOP/s alone"
        for row in records(alone.sort_values("ms", ascending=False).head(5))
    ]
    return f"Operations under measured roofs: {'; '.join(parts)}." if parts else "No operation alone."


def _figure(table: pd.DataFrame, results: Results) -> Figure:
    shown = _shown(table)
    names = user_first(results, shown["member"])
    count = fitting([HEAD + HIGH + BELOW] * len(names), around=1.2)
    others = list(dict.fromkeys(mix.partition("+")[2] for mix in shown["mix"] if mix))
    looks = dict(list(looks_of(results, others).items())[:BESIDE])
    sheet = Sheet(results)
    for name in names[:count]:
        axes = sheet.panel(HIGH, LEFT, PAGE - LEFT - WIDE, above=HEAD)
        _panel(axes, shown[shown["member"] == name], looks)
        axes.set_title(f"{plain(name)}, traced", loc="left", pad=4, fontweight="bold")
        sheet.skip(BELOW)
    keys = [legend_key("alone", (INK, "o"), hollow=True, size=6)]
    sheet.legend(keys + [legend_key(f"beside {plain(name)}", look, size=6) for name, look in looks.items()])
    key = "numbers: operations, those that take most of a step first; size: share of the step; operations of one "
    key += f"intensity stand side by side; {_roof_words(shown)}"
    key += "; ≈, hollow, dotted: work estimated" if (shown["source"] == ESTIMATED).any() else ""
    key += f"; not drawn: antagonists beyond {BESIDE}" if len(others) > BESIDE else ""
    key += f"; not drawn: {counted(len(names) - count, 'lead')}; the CSV has all" if len(names) > count else ""
    return sheet.finish(key)


def _how(table: pd.DataFrame) -> str:
    """Where the numbers come from: oneDNN's log, or estimates, which are marked."""
    if not (table["source"] == ESTIMATED).any():
        return "Under oneDNN's log"
    marked = "≈, hollow beside antagonists too: work estimated from the graph of the step, without oneDNN's log"
    return marked if (table["source"] == ESTIMATED).all() else f"Under oneDNN's log; {marked}"


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """The rows without a partition, of leads that were traced alone too."""
    rows = table[table["partition"] == UNMANAGED]
    return rows[rows["member"].isin(rows.loc[rows["kind"] == "alone", "member"])]


def _roof_words(table: pd.DataFrame) -> str:
    memory, compute = table["memory_gbs"].dropna(), table["compute_gflops"].dropna()
    if memory.empty and compute.empty:
        return "no roof is drawn, because none was measured"
    parts = []
    if len(memory):
        parts.append(f"memory: our stream triad, {_span(memory)} GB/s")
    if len(compute):
        parts.append(f"arithmetic: our multiply-adds of doubles, doubled for 32 bits, {_span(compute)} GFLOP/s")
    lacking = [name for name, known in (("memory", memory), ("arithmetic", compute)) if known.empty]
    parts += [f"no roof of {name} was measured" for name in lacking]
    return "roofs of the lead's CPUs alone: " + "; ".join(parts)


def _span(values: pd.Series) -> str:
    """A number, or from where to where it goes over the programs."""
    ends = dict.fromkeys((number(values.min()), number(values.max())))
    return " to ".join(ends)


def _panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, Look]) -> None:
    alone = rows[rows["kind"] == "alone"].sort_values("ms", ascending=False).head(DRAWN)
    for place, (x, row) in enumerate(zip(_side_by_side(alone["intensity"]), records(alone), strict=True), start=1):
        same = rows[(rows["operation"] == row["operation"]) & (rows["type"] == row["type"])]
        words, estimated = operation_words(f"{row['operation']}:{row['type']}"), row["source"] == ESTIMATED
        for other in records(same[same["kind"] == "corun"]):
            name = other["mix"].partition("+")[2]
            if look := looks.get(name):
                line = ":" if other["source"] == ESTIMATED else "-"
                axes.plot(
                    [x, x], [row["gflops"], other["gflops"]], color=look[0], linewidth=0.8, linestyle=line, zorder=2
                )
                _point(axes, x, other, look, f"{words} beside {plain(name)}", hollow=other["source"] == ESTIMATED)
        _point(axes, x, row, (GREY if estimated else INK, "o"), f"{words} alone", hollow=True)
        mark = f"{'≈' if estimated else ''}{place}"
        axes.annotate(mark, (x, row["gflops"]), xytext=(5, 3), textcoords="offset points", fontsize=SMALL)
        at = 1 + 0.15 / WIDE, 1 - 0.2 * place / HIGH
        axes.text(*at, f"{place}  {squeezed(words, LETTERS, 1)}", transform=axes.transAxes, fontsize=SMALL, color=INK)
    _roofs(axes, rows[rows["operation"].isin(alone["operation"])])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("operations per byte, at most")
    axes.set_ylabel("GFLOP/s")
    lines_across(axes, "y")


def _point(axes: Axes, x: float, row: Row, look: Look, who: str, hollow: bool) -> None:
    if not math.isnan(row["gflops_low"]):
        ends = [row["gflops_low"], row["gflops_high"]]
        axes.plot([x, x], ends, color=look[0], linewidth=0.6, alpha=0.6, zorder=2)
    words = f"{who}: {number(row['gflops'])} GFLOP/s" + (", estimated" if row["source"] == ESTIMATED else "")
    size = 3.0 + 9.0 * math.sqrt(min(1.0, row["share"]))
    dot(axes, x, row["gflops"], look, words, hollow=hollow, size=size, zorder=3)


def _side_by_side(intensity: pd.Series) -> list[float]:
    """Places of operations, in their order: those of nearly one intensity beside each other, around it."""
    at = intensity.to_numpy(dtype=float)
    near = np.round(np.log(at) / np.log(NEAR)).astype(int)
    placed = [int((near[:place] == each).sum()) for place, each in enumerate(near)]
    count = [int((near == each).sum()) for each in near]
    return [float(x * APART ** (place - (many - 1) / 2)) for x, place, many in zip(at, placed, count, strict=True)]


def _roofs(axes: Axes, rows: pd.DataFrame) -> None:
    """Lines of the roofs, over what is drawn and the point where they meet."""
    memory, compute = rows["memory_gbs"].mean(), rows["compute_gflops"].max()
    across, up = rows["intensity"], rows["gflops"].tolist()  # a wide interval may reach beyond the axes
    left, right = across.min() / SPACE, across.max() * SPACE
    ridge = compute / memory
    if not math.isnan(ridge):
        left, right = min(left, ridge / SPACE), max(right, ridge * SPACE)
    top = max([*up, *([compute] if not math.isnan(compute) else [])]) * SPACE
    if not math.isnan(memory):
        ends = np.array([left, right if math.isnan(ridge) else ridge])
        axes.plot(ends, memory * ends, color=GREY, linewidth=1.2, zorder=1)
    if not math.isnan(compute):
        begin = left if math.isnan(ridge) else ridge
        axes.plot([begin, right], [compute, compute], color=GREY, linewidth=1.2, zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(up) / SPACE, top)
