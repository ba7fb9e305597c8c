"""Axes of ratios of counts: a line per metric, a mark per antagonist, on a log scale around one."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from castmates.report.figures.antagonists import beside as beside_of
from castmates.report.figures.panels import without_axis
from castmates.report.figures.style import GREY, Look, broken
from castmates.report.figures.values import with_value
from castmates.report.results import records
from castmates.report.text.words import interval

LEFT, RIGHT = 2.3, 0.12  # inches beside the axes
LINE, GAP, HEAD = 0.13, 0.14, 0.42  # inches of one scene, between two metrics, above a panel
SECONDS = ("task-clock", "cpu-clock")  # which the kernel counts in ns
RARE = 1e-3  # per unit of progress; shown per million


def height(rows: pd.DataFrame) -> float:
    """Inches of a panel of these rows."""
    lines = sum(max(2, count) for count in rows.groupby("metric", sort=False).size())
    return LINE * lines + GAP * rows["metric"].nunique()


def panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, Look], reach: float, title: str, is_last: bool) -> None:
    """Draw the metrics of these rows, which have the columns of `counters.CHANGES`."""
    axes.axvline(1.0, color=GREY, linewidth=0.6, zorder=1)
    y, ticks, labels = 0.0, [], []
    for index, (metric, group) in enumerate(rows.groupby("metric", sort=False)):
        lines = max(2, len(group))
        begin, y = y, y + LINE * lines + GAP
        if index % 2:
            axes.axhspan(begin, y, color="#f5f5f5", linewidth=0, zorder=0)
        ticks.append((begin + y) / 2)
        labels.append(_label(str(metric), records(group)))
        first = (begin + y) / 2 - LINE * (len(group) - 1) / 2
        for line, row in enumerate(records(group)):
            _point(axes, first + LINE * line, row, looks[beside_of(row["mix"])])
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    axes.set_ylim(y, 0)
    axes.set_yticks(ticks, labels)
    without_axis(axes)
    _ticks(axes, reach)
    axes.set_title(title, loc="left", pad=4, fontweight="bold")
    if is_last:
        axes.set_xlabel("beside antagonists / alone, per unit of progress")


def _point(axes: Axes, y: float, row: dict[str, Any], look: Look) -> None:
    colour, marker = look
    within = math.isnan(row["ratio_low"])
    low, high = (row["within_low"], row["within_high"]) if within else (row["ratio_low"], row["ratio_high"])
    if not math.isnan(low):
        axes.plot(
            [low, high], [y, y], color=colour, linewidth=1.4, linestyle=(0, (2, 1.2)) if within else "-", zorder=3
        )
    (point,) = axes.plot([row["ratio"]], [y], marker, color=colour, markersize=4.2, zorder=4)
    ends = "" if math.isnan(low) else f" {interval(low, high, 2)}"
    with_value(point, f"{row['metric']} beside {beside_of(row['mix'])}: {row['ratio']:.3g} times alone{ends}")


def _label(metric: str, rows: list[dict[str, Any]]) -> str:
    """The metric, and what it is in windows alone."""
    unit = rows[0]["unit"]
    alone = math.exp(sum(math.log(row["alone"]) for row in rows) / len(rows))
    if unit and alone < RARE and metric not in SECONDS:
        return f"{broken(metric, 34)}\nalone {amount(1e6 * alone)} per 10⁶ {unit}"
    return f"{broken(metric, 34)}\nalone {amount(alone, metric)}" + (f" per {unit}" if unit else "")


def amount(value: float, metric: str = "") -> str:
    """A count in three digits with its prefix; clocks in seconds."""
    if metric in SECONDS:
        value /= 1e9
    if value <= 0:
        return f"{value:g}"
    power = min(max(math.floor(math.log10(float(f"{value:.2e}")) / 3), -4), 4)
    prefix = {-4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}[power]
    if metric not in SECONDS and power < 0:
        power, prefix = 0, ""  # thousandths of a fault are no usual unit
    return f"{float(f'{value / 1000**power:.3g}'):g} {prefix}{'s' if metric in SECONDS else ''}".strip()


def reach_of(table: pd.DataFrame) -> float:
    """Symmetric around one on the log axis, wide enough for all that is drawn, and never so narrow as to show noise."""
    drawn = [row[name] for row in records(table) for name in ("ratio", *_bounds(row))]
    logs = [abs(math.log(value)) for value in drawn if value > 0 and math.isfinite(value)]
    return math.exp(min(1.12 * max([*logs, math.log(1.05)]), math.log(1e4)))


def _bounds(row: dict[str, Any]) -> tuple[str, str]:
    return ("within_low", "within_high") if math.isnan(row["ratio_low"]) else ("ratio_low", "ratio_high")


def _ticks(axes: Axes, reach: float) -> None:
    """Few ticks, as ratios that people read."""
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000)
    chosen = {max(step for step in steps if step <= bound) for bound in (reach, math.sqrt(reach)) if bound >= steps[0]}
    ticks = sorted({1.0, *chosen, *(1 / step for step in chosen)})
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}" if value < 1 else f"{value:.3g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def keys_of(looks: dict[str, Look]) -> list[Line2D]:
    """The keys of the antagonists."""
    return [
        Line2D([], [], linestyle="", marker=marker, markersize=4.5, color=colour, label=f"beside {name}")
        for name, (colour, marker) in looks.items()
    ]
