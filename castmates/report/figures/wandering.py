"""The figure of `castmates workloads noise`: what neighbouring windows differ by, and what a minute resolves."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from castmates.analysis.design.pilot import BUDGET, GAP, Wandering
from castmates.report.figures.sheet import lines_across
from castmates.report.figures.style import PAGE, looks_of, styled, write

HIGH = 2.6  # inches


def write_figure(rows: Sequence[Wandering], stem: Path) -> None:
    """Write STEM.svg, STEM.pdf, STEM.png and STEM.csv."""
    source = pd.DataFrame([asdict(row) for row in rows])
    with styled():
        figure = _figure(source)
    write(figure, source, stem)


def _figure(source: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE, HIGH), layout="constrained")
    left, right = figure.subplots(1, 2)
    _panel(left, source, "scatter", 100.0, "neighbours differ by (%)")
    _panel(right, source, "half_width_pct", 1.0, f"half-width after {BUDGET:.0f} s (points)")
    right.legend(loc="upper left", fontsize=7)
    left.set_title(f"Two windows of this length, {1e3 * GAP:.0f} ms apart", loc="left", fontsize=8)
    right.set_title("After a minute, if pairs were independent", loc="left", fontsize=8)
    return figure


def _panel(axes: Axes, source: pd.DataFrame, column: str, factor: float, label: str) -> None:
    for name, (colour, marker) in looks_of(list(dict.fromkeys(source["workload"]))).items():
        own = source[source["workload"] == name]
        axes.plot(own["seconds"], factor * own[column], color=colour, marker=marker, markersize=4, label=name)
    axes.set_xscale("log")
    ticks = sorted(source["seconds"].unique())
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length of a window (s)")
    axes.set_ylabel(label)
    lines_across(axes, "y")
