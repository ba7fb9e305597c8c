"""The figure `comparison` of several studies: a group of lines per pair, a line per study, the baseline first.

On the left what each study loses, on the right its slowdown against the baseline's. Colour and marker are those of
the antagonist.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import LESS, MORE
from castmates.report.comparison.compared import Several
from castmates.report.comparison.figure import certain_dot, pair_of_axes, verdict
from castmates.report.comparison.several_words import pair_name, verdict_in
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.sheet import Origin, Sheet, empty_figure, inches_of
from castmates.report.figures.style import GREY, INK, Look, squeezed, styled
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss
from castmates.study.spec import UNMANAGED

LINES = 60  # of studies, over all pairs
ROW, HEAD, GAP = 0.17, 0.2, 0.1  # inches: a study's line, a pair's heading, between pairs
LEFT = 1.55
NAME = 24  # letters of a study's name
MEAN: Look = (INK, "D")


@dataclass(frozen=True)
class Point:
    """What one study shows of a pair, or of the mean over pairs: per cent."""

    name: str  # of the study
    loss: tuple[float, float, float]  # value, low, high
    change: tuple[float, float, float]  # of the slowdown against the baseline's
    verdict: str


@dataclass(frozen=True)
class Group:
    """A pair with its studies."""

    title: str
    look: Look
    points: tuple[Point, ...]


def draw(several: Several) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the leads of all studies against alone, without a partition."""
    source = several.table
    source = source[(source["where"] == "both") & (source["role"] == "lead") & (source["baseline"] == "alone")]
    source = source[source["partition_a"] == UNMANAGED]
    groups = _groups(several, records(source))
    with styled():
        if not groups:
            return empty_figure("The studies have no lead's loss against alone in common.", several.origin), source
        room = max(1, LINES // len(several.studies))
        return _figure(several, groups[:room], len(groups)), source


def _groups(several: Several, rows: Sequence[Row]) -> list[Group]:
    looks = looks_in_order(several.antagonists, [row["antagonists"] for row in rows])
    pairs: dict[str, list[Row]] = {}
    for row in rows:
        pairs.setdefault(row["mix"], []).append(row)
    groups = [
        Group(
            pair_name(own[0]),
            looks[own[0]["antagonists"]],
            (_point(several.pairs[0].a.letter, several.pairs[0].a.name, own[0], "a"), *(_other(row) for row in own)),
        )
        for own in pairs.values()
    ]
    groups.sort(key=lambda group: -group.points[0].loss[0] if not math.isnan(group.points[0].loss[0]) else math.inf)
    return [*_mean(several), *groups]


def _mean(several: Several) -> list[Group]:
    """The geometric means, first; none of a single pair."""
    rows = records(several.means)
    if not rows or rows[0]["pairs"] < 2:
        return []
    names = {study.letter: study.name for study in several.studies}
    points = []
    for row in rows:
        verdict = "" if row["verdict"] == "baseline" else verdict_in(row["verdict"], row["letter"])
        points.append(Point(f"{row['letter']}  {names[row['letter']]}", _losses(row, ""), _change(row), verdict))
    return [Group(f"geometric mean of {rows[0]['pairs']} mixes", MEAN, tuple(points))]


def _other(row: Row) -> Point:
    point = _point(row["letter"], row["study_b"], row, "b")
    return Point(point.name, point.loss, _change(row), verdict_in(row["verdict"], row["letter"]))


def _point(letter: str, name: str, row: Row, side: str) -> Point:
    return Point(f"{letter}  {name}", _losses(row, f"_{side}"), (math.nan,) * 3, "")


def _change(row: Row) -> tuple[float, float, float]:
    value, low, high = (100 * (row[f"ratio{end}"] - 1) for end in ("", "_low", "_high"))
    return value, low, high


def _figure(several: Several, groups: list[Group], known: int) -> Figure:
    sheet = Sheet(Origin(several.origin), head=0.12)
    heights = [HEAD + ROW * len(group.points) + GAP for group in groups]
    losses, changes = pair_of_axes(sheet, LEFT, sum(heights), several.margin)
    for place, group in enumerate(groups):
        _draw_group(losses, changes, sum(heights[:place]), group)
    losses.set_xlabel("loss of the lead against alone (%)")
    changes.set_xlabel("slowdown above the baseline's (%)")
    parts = ["bars: 95 % between launches, on the right Welch's t over the launches of both studies"]
    parts.append(f"band: margin of ±{100 * several.margin:.3g} %")
    parts.append("words: p < 0.05 after Holm's adjustment over mixes and studies, or inside the margin")
    hollow = any(math.isnan(point.loss[1]) for group in groups for point in group.points)
    parts += ["hollow: fewer than three launches, no interval"] if hollow else []
    parts += [f"{known - len(groups)} more mixes are in the CSV"] if known > len(groups) else []
    return sheet.finish("; ".join(parts))


def _draw_group(losses: Axes, changes: Axes, top: float, group: Group) -> None:
    names: Any = {"transform": losses.get_yaxis_transform(), "va": "center"}
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    left = -(LEFT - 0.1) / inches_of(losses)[0]
    losses.text(left, top + HEAD / 2, group.title, fontsize=7.2, fontweight="bold", bbox=white, **names)
    for place, point in enumerate(group.points):
        y = top + HEAD + ROW * (place + 0.5)
        losses.text(-0.03, y, squeezed(point.name, NAME, 1), ha="right", fontsize=6.8, **names)
        who = f"{point.name.replace('  ', ', ')}, {group.title}"
        certain_dot(losses, y, point.loss, group.look, f"{who}: loss {{}}")
        certain_dot(changes, y, point.change, group.look, f"{who}: slowdown above the baseline's {{}}")
        words, colour = (point.verdict, INK) if place else ("baseline", GREY)
        verdict(changes, y, words, colour, point.verdict in (MORE, LESS))


def _losses(row: Row, side: str) -> tuple[float, float, float]:
    value, low, high = (as_loss(row[f"slowdown{side}{end}"]) for end in ("", "_low", "_high"))
    return value, low, high
