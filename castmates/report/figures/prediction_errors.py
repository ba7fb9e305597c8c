"""The figure `prediction_errors`: each measured loss against what was predicted without its mix."""

import math
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.analysis.prediction.quality import CHECK, GRID, PROFILE, SEVERAL, quality
from castmates.report.figures.panels import Grid, drawn_grid, lines_across
from castmates.report.figures.style import COLOURS, COLUMN, GREY, PALE, empty_figure, styled
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.prediction import pair_of
from castmates.report.text.stamps import caveat
from castmates.report.text.words import number, percent_of

FIGURE = {"title": "Predicted against measured", "part": "prediction", "place": 90, "needs": "PREDICTION"}
BAND = 2.0  # points: the error of predictions that is aimed at
ROOM = Grid(width=COLUMN, axes=2.75, above=0.08, below=0.36, left=0.52, right=0.1)


@dataclass(frozen=True)
class Kind:
    """Losses that are compared with their predictions, and how they are drawn."""

    part: str
    words: str
    colour: str
    marker: str
    filled: bool = False


KINDS = (
    Kind(PROFILE, "bubbles and reporters", GREY, "."),
    Kind(SEVERAL, "several antagonists", COLOURS[2], "^"),
    Kind(GRID, "pairs, left out in turn", COLOURS[0], "o"),
    Kind(CHECK, "fresh pairs, never fitted", COLOURS[1], "D", filled=True),
)


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = _compared(results)
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), source
        panels = list(source.groupby("platform", sort=False))
        titles = ["" if len(panels) == 1 else str(platform) for platform, _ in panels]
        drawn = drawn_grid(titles, _key(source), results, ROOM)
        for axes, (_, rows) in zip(drawn.places, panels, strict=False):
            _panel(axes, rows)
        drawn.labels("measured loss (%)", "predicted without its mix (%)")
        return drawn.figure, source


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    return "" if len(_compared(results)) else f"No prediction of the study {results.name} can be compared."


def caption(results: Results) -> str:
    """What stands below the figure."""
    return (
        "Each measured loss against the loss that was predicted for it without any mix of its two programs; vertical "
        f"lines: predicted 95 % intervals. Grey: y = x, \N{PLUS-MINUS SIGN}{BAND:g} points. {_errors(results)}"
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    return f"Predicted against measured losses. {_errors(results)}" if not lacking(results) else lacking(results)


def _errors(results: Results) -> str:
    found = [(kind, quality(results.predictions, kind.part)) for kind in reversed(KINDS)]
    parts = [
        f"{kind.words} (n = {each.count}): mean error {number(each.mean)}, largest {number(each.largest)}"
        for kind, each in found
        if each.count
    ]
    return f"In points, {'; '.join(parts)}. "


def _compared(results: Results) -> pd.DataFrame:
    return results.predictions[results.predictions["error"].notna()]


def _key(source: pd.DataFrame) -> str:
    inside = (source.loc[source["part"].isin([GRID, CHECK]), "error"].abs() <= BAND).mean()
    return "" if math.isnan(inside) else f"{percent_of(round(float(inside), 2))} of pairs within the band"


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    values = rows[["loss_pct", "without_pct"]]
    low, high = min(0.0, float(values.min().min())), float(values.max().max())
    room = 0.05 * (high - low) + 0.5
    ends = [low - room, high + room]
    axes.fill_between(ends, [end - BAND for end in ends], [end + BAND for end in ends], color=PALE, zorder=0)
    axes.plot(ends, ends, color=GREY, linewidth=0.7, zorder=1)
    keys = []
    for kind in KINDS:
        own = rows[rows["part"] == kind.part]
        if own.empty:
            continue
        _points(axes, own, kind)
        keys.append(_look(kind))
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_aspect("equal", adjustable="box")
    lines_across(axes, "y")
    axes.legend(handles=keys[::-1], loc="upper left", fontsize=6.5, handletextpad=0.2, borderaxespad=0.2)


def _points(axes: Axes, rows: pd.DataFrame, kind: Kind) -> None:
    for row in records(rows):
        x = row["loss_pct"]
        if not math.isnan(row["without_low"]):
            axes.plot([x, x], [row["without_low"], row["without_high"]], color=kind.colour, linewidth=0.4, alpha=0.5)
    words = [
        f"{pair_of(row)}: measured {number(row['loss_pct'])} %, predicted {number(row['without_pct'])} %"
        for row in records(rows)
    ]
    face = kind.colour if kind.filled else "white"
    marks = axes.scatter(
        rows["loss_pct"], rows["without_pct"], s=11, marker=kind.marker, facecolor=face, edgecolor=kind.colour,
        linewidth=0.8, zorder=3,
    )  # fmt: skip
    with_value(marks, *words)


def _look(kind: Kind) -> Line2D:
    face = kind.colour if kind.filled else "white"
    return Line2D(
        [], [], linestyle="none", marker=kind.marker, markersize=3.5, markerfacecolor=face, label=kind.words,
        markeredgecolor=kind.colour,
    )  # fmt: skip
