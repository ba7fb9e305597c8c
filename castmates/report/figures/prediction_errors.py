"""The figure `prediction_errors`: each measured loss against what was predicted without its mix."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.prediction.table import CHECK, GRID, PROFILE, SEVERAL, quality
from castmates.report.figures.marks import bar, legend_key, with_value
from castmates.report.figures.sheet import Room, Sheet, drawing, lines_across
from castmates.report.figures.style import COLOURS, COLUMN, GREY, PAGE, PALE
from castmates.report.results import Results, records
from castmates.report.text.prediction import pair_of
from castmates.report.text.words import number, percent_of

FIGURE = {"title": "Predicted against measured", "part": "prediction", "place": 90, "needs": "PREDICTION"}
BAND = 2.0  # points: the error of predictions that is aimed at
ROOM = Room(axes=2.75, above=0.08, below=0.36, left=0.52, right=0.1)


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
    source = _compared(results)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    panels = list(source.groupby("platform", sort=False))
    sheet = Sheet(results, COLUMN if len(panels) == 1 else PAGE)
    titles = ["" if len(panels) == 1 else str(platform) for platform, _ in panels]
    for axes, (_, rows) in zip(sheet.grid(titles, ROOM), panels, strict=False):
        _panel(axes, rows)
    sheet.labels("measured loss (%)", "predicted without its mix (%)")
    inside = (source.loc[source["part"].isin([GRID, CHECK]), "error"].abs() <= BAND).mean()
    some = "" if math.isnan(inside) else f"{percent_of(round(float(inside), 2))} of pairs within the band"
    return sheet.finish(some)


def lacking(results: Results) -> str:
    return "" if len(_compared(results)) else f"No prediction of the study {results.name} can be compared."


def caption(results: Results) -> str:
    return (
        "Each measured loss against the loss that was predicted for it without any mix of its two programs; vertical "
        f"lines: predicted 95 % intervals. Grey: y = x, \N{PLUS-MINUS SIGN}{BAND:g} points. {_errors(results)}"
    )


def alternative(results: Results) -> str:
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
        for row in records(own):
            bar(
                axes,
                row["loss_pct"],
                row["without_low"],
                row["without_high"],
                kind.colour,
                width=0.4,
                upright=True,
                zorder=2,
            )
        marks = axes.scatter(
            own["loss_pct"], own["without_pct"], s=11, marker=kind.marker, edgecolor=kind.colour, linewidth=0.8,
            facecolor=kind.colour if kind.filled else "white", zorder=3,
        )  # fmt: skip
        with_value(marks, *map(_value, records(own)))
        keys.append(legend_key(kind.words, (kind.colour, kind.marker), hollow=not kind.filled, size=3.5))
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_aspect("equal", adjustable="box")
    lines_across(axes, "y")
    axes.legend(handles=keys[::-1], loc="upper left", fontsize=6.5, handletextpad=0.2, borderaxespad=0.2)


def _value(row: dict[str, Any]) -> str:
    return f"{pair_of(row)}: measured {number(row['loss_pct'])} %, predicted {number(row['without_pct'])} %"
