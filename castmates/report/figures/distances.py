"""The figure `distances`: what a lead loses by the nearness of its neighbours, a line for each number of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures.neighbours import other_looks
from castmates.report.figures.panels import Grid, drawn_grid, lines_across, spread_labels
from castmates.report.figures.style import GREY, PAGE, SMALL, Look, empty_figure, styled
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.places import AXIS, WORDS
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, number, plain, units

ROOM = Grid(width=PAGE, axes=2.1, above=0.1, below=0.62, left=0.62, right=0.95)
APART = 0.09  # between the marks of two numbers of neighbours at one place, in places
MOST_TOLD = 8  # panels in the alternative text
HOLLOW = ("unclear", "equivalent", "too few blocks")
Row = dict[str, object]


@dataclass(frozen=True)
class Panel:
    """A lead and the neighbours that it has in several arrangements, on one platform."""

    title: str
    rows: pd.DataFrame

    @property
    def places(self) -> list[str]:
        """The distances, nearest first."""
        return list(dict.fromkeys(self.rows["distance"]))


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), results.distances
        return _figure(_panels(results), results), results.distances


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    known = results.distances["degradation_pct"].notna().any()
    return "" if known else f"No loss by distance or number of neighbours is known in the study {results.name}."


def caption(results: Results) -> str:
    """What stands below the figure."""
    return (
        "What the program loses against running alone, in per cent, by where its neighbours sit, from near to far, and "
        f"by how many there are. Lines: 95 % t intervals between launches ({units(results.distances['blocks'])}). "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    parts = []
    for panel in _panels(results)[:MOST_TOLD]:
        known = [row for row in records(panel.rows) if not math.isnan(row["degradation_pct"])]
        told = [f"{row['count']} {WORDS[row['distance']]} {number(row['degradation_pct'])} %" for row in known]
        parts.append(f"{panel.title}: {', '.join(told)}")
    return f"Loss by number and nearness of neighbours. {'; '.join(parts)}." if parts else lacking(results)


def _panels(results: Results) -> list[Panel]:
    keys = ["lead", "antagonists", "platform"]
    several = results.distances["platform"].nunique() > 1
    panels = []
    for (lead, antagonists, platform), rows in results.distances.groupby(keys, sort=False):
        where = f" ({platform})" if several else ""
        panels.append(Panel(f"{plain(str(lead))} beside {plain(str(antagonists))}{where}", rows))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    counts = sorted({int(count) for panel in panels for count in panel.rows["count"]})
    looks = other_looks(results, counts)
    few = any(row["verdict"] in HOLLOW for panel in panels for row in records(panel.rows))
    key = "hollow: no loss proven (Holm-adjusted), or too few launches" if few else ""
    drawn = drawn_grid([panel.title for panel in panels], key, results, ROOM)
    for axes, panel in zip(drawn.places, panels, strict=False):
        _panel(axes, panel, looks)
    drawn.labels("where the neighbours sit, from near to far", "loss (%)")
    return drawn.figure


def _panel(axes: Axes, panel: Panel, looks: dict[int, Look]) -> None:
    places = panel.places
    labels = []
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    for index, (count, look) in enumerate(looks.items()):
        rows = [row for row in records(panel.rows) if row["count"] == count]
        known = [row for row in rows if not math.isnan(row["degradation_pct"])]
        if known:
            shift = (index - (len(looks) - 1) / 2) * min(APART, 0.5 / len(looks))
            _line(axes, [(places.index(row["distance"]) + shift, row) for row in known], look)
            labels.append((known[-1]["degradation_pct"], counted(count, "neighbour"), look[0]))
    axes.set_xticks(range(len(places)), [AXIS[place] for place in places], fontsize=SMALL)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.margins(y=0.08)
    lines_across(axes, "y")
    spread_labels(axes, labels)


def _line(axes: Axes, at: Sequence[tuple[float, dict[str, object]]], look: Look) -> None:
    colour, marker = look
    losses = [float(str(row["degradation_pct"])) for _, row in at]
    axes.plot([x for x, _ in at], losses, color=colour, linewidth=0.8, zorder=2)
    words = []
    for (x, row), loss in zip(at, losses, strict=True):
        low, high = (float(str(row[f"degradation_{end}"])) for end in ("low", "high"))
        ends = "" if math.isnan(low) else f" {interval(low, high)}"
        if ends:
            axes.plot([x, x], [low, high], color=colour, linewidth=1.2, zorder=3)
        words.append(
            f"{counted(int(str(row['count'])), 'neighbour')} {WORDS[str(row['distance'])]}: {number(loss)} %{ends}"
        )
    faces = ["white" if row["verdict"] in HOLLOW else colour for _, row in at]
    marks = axes.scatter(
        [x for x, _ in at], losses, s=16, marker=marker, c=faces, edgecolors=colour, linewidths=0.8, zorder=4
    )
    with_value(marks, *words)
