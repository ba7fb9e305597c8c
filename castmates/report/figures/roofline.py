"""The figure `roofline`: what operations reach alone and beside antagonists, under the roofs of the lead's CPUs.

The work of an operation is the same in all scenes, so that its points lie above each other: beside others they sink.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from castmates.analysis.operations.known_work import ESTIMATED
from castmates.report.figures import antagonists
from castmates.report.figures.panels import NOTE, axes_at, drawing, finish, fitting, legend, lines_across, small_print
from castmates.report.figures.style import (
    GREY,
    INK,
    PAGE,
    SMALL,
    Look,
    badge_room,
    squeezed,
)
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.stamps import caveat
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
LEFT, WIDE, HIGH, HEAD, UNDER = 0.62, 3.5, 2.6, 0.4, 0.5  # inches
NAMES, LETTERS = LEFT + WIDE + 0.15, 44  # where the operations' names begin, and how long they are
SPACE = 1.6  # to each side of what is drawn, as a ratio
NEAR, APART = 1.1, 1.07  # ratios of intensities that are nearly one, and by which these are set apart
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.roofline, lacking, lambda: _figure(results.roofline, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if len(_shown(results.roofline)):
        return ""
    return (
        f"No operation of the study {results.name} has work that is known in traces of the lead alone "
        "(castmates help primitives)."
    )


def caption(results: Results) -> str:
    """What stands below the figure."""
    return (
        "What operations reach, hollow alone and filled beside an antagonist, under measured roofs. Bytes are those of "
        "operands, a lower bound: points may lie further left, and above the memory's roof where caches serve them. "
        f"{_how(results.roofline)}, 95 % t intervals between launches "
        f"({units(results.roofline['launches'])}). "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
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
    names = antagonists.user_first(results, shown["member"])
    count = fitting([HEAD + HIGH + UNDER] * len(names), around=1.2)
    mixes = [mix for mix in dict.fromkeys(shown["mix"]) if mix]
    looks = dict(list(antagonists.looks(results, (mix.partition("+")[2] for mix in mixes)).items())[:BESIDE])
    key = "numbers: operations, those that take most of a step first; size: share of the step; operations of one "
    key += f"intensity stand side by side; {_roof_words(shown)}"
    key += "; ≈, hollow, dotted: work estimated" if (shown["source"] == ESTIMATED).any() else ""
    key += f"; not drawn: antagonists beyond {BESIDE}" if len({mix.partition("+")[2] for mix in mixes}) > BESIDE else ""
    key += f"; not drawn: {counted(len(names) - count, 'lead')}; the CSV has all" if len(names) > count else ""
    notes = small_print(PAGE, key, results)
    foot = 0.4 + NOTE * len(notes)
    top = 0.05 + badge_room(caveat(results), PAGE)
    height = top + count * (HEAD + HIGH + UNDER) + foot
    figure, y = Figure(figsize=(PAGE, height)), height - top
    for name in names[:count]:
        y -= HEAD + HIGH
        axes = axes_at(figure, LEFT, y, WIDE, HIGH)
        _panel(axes, shown[shown["member"] == name], looks)
        axes.set_title(f"{plain(name)}, traced", loc="left", pad=4, fontweight="bold")
        y -= UNDER
    keys: list[Artist] = [Line2D([], [], marker="o", color=INK, markerfacecolor="white", linestyle="", label="alone")]
    keys += [
        Line2D([], [], marker=marker, color=colour, linestyle="", label=f"beside {plain(name)}")
        for name, (colour, marker) in looks.items()
    ]
    legend(figure, keys, (foot - 0.02) / height, len(keys))
    return finish(figure, notes, results)


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
    alone = alone.assign(x=_side_by_side(alone["intensity"]))
    for place, row in enumerate(records(alone), start=1):
        same = rows[(rows["operation"] == row["operation"]) & (rows["type"] == row["type"])]
        for other in records(same[same["kind"] == "corun"]):
            if look := looks.get(other["mix"].partition("+")[2]):
                _beside(axes, row, {**other, "x": row["x"]}, look)
        estimated = row["source"] == ESTIMATED
        _point(axes, row, GREY if estimated else INK, "o", "white")
        axes.annotate(
            f"{'≈' if estimated else ''}{place}",
            (row["x"], row["gflops"]),
            xytext=(5, 3),
            textcoords="offset points",
            fontsize=SMALL,
        )
        words = f"{place}  {squeezed(operation_words(row['operation'] + ':' + row['type']), LETTERS, 1)}"
        axes.text(1 + 0.15 / WIDE, 1 - 0.2 * place / HIGH, words, transform=axes.transAxes, fontsize=SMALL, color=INK)
    _roofs(axes, rows[rows["operation"].isin(alone["operation"])])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("operations per byte, at most")
    axes.set_ylabel("GFLOP/s")
    lines_across(axes, "y")


def _side_by_side(intensity: pd.Series) -> list[float]:
    """Places of operations, in their order: those of nearly one intensity beside each other, around it."""
    at = intensity.to_numpy(dtype=float)
    near = np.round(np.log(at) / np.log(NEAR)).astype(int)
    placed = [int((near[:place] == each).sum()) for place, each in enumerate(near)]
    count = [int((near == each).sum()) for each in near]
    return [float(x * APART ** (place - (many - 1) / 2)) for x, place, many in zip(at, placed, count, strict=True)]


def _beside(axes: Axes, alone: Row, beside: Row, look: Look) -> None:
    colour, marker = look
    estimated = beside["source"] == ESTIMATED
    axes.plot(
        [alone["x"], beside["x"]], [alone["gflops"], beside["gflops"]], color=colour, linewidth=0.8, zorder=2,
        linestyle=":" if estimated else "-",
    )  # fmt: skip
    _point(axes, beside, colour, marker, "white" if estimated else colour)


def _point(axes: Axes, row: Row, colour: str, marker: str, fill: str) -> None:
    low, high = row["gflops_low"], row["gflops_high"]
    if not math.isnan(low):
        axes.plot([row["x"]] * 2, [low, high], color=colour, linewidth=0.6, alpha=0.6, zorder=2)
    size = 3.0 + 9.0 * math.sqrt(min(1.0, row["share"]))
    scene = "alone" if row["kind"] == "alone" else f"beside {plain(row['mix'].partition('+')[2])}"
    words = f"{operation_words(row['operation'] + ':' + row['type'])} {scene}: {number(row['gflops'])} GFLOP/s"
    words += ", estimated" if row["source"] == ESTIMATED else ""
    point = axes.plot(
        [row["x"]], [row["gflops"]], marker=marker, markersize=size, color=colour, markerfacecolor=fill,
        linestyle="", zorder=3,
    )[0]  # fmt: skip
    with_value(point, words)


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
