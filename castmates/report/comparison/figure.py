"""The figure `comparison`: what the leads lose in A and in B, and by how much their slowdowns differ; or in several.

On the left what each study loses, on the right its slowdown against the baseline's. Colour and marker are those of
the antagonist; of two studies A, the baseline, is grey. Of several each pair has a line per study, the baseline first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import LESS, MORE
from castmates.report.comparison.compare import Compared, Several
from castmates.report.comparison.several_words import pair_name, verdict_in
from castmates.report.comparison.words import change
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.marks import bar, dot, legend_key
from castmates.report.figures.sheet import UNDER, Origin, Sheet, empty_figure, evenly, inches_of, rows_of
from castmates.report.figures.style import GREY, INK, PAGE, Look, broken, squeezed, styled
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row
from castmates.study.spec import UNMANAGED

ROWS = 24
ROW, LINE = 0.36, 0.125  # inches: a row, a line of its name
LEFT, BETWEEN, RIGHT = 1.75, 0.3, 1.15
SHIFTS = {"a": -0.17, "b": 0.17}  # of a row's height
BAND = "#dcebf5"
STUDIES = 60  # lines, over all pairs
STUDY, HEAD, GAP = 0.17, 0.2, 0.1  # inches: a study's line, a pair's heading, between pairs
NAMES = 1.55  # inches beside the axes
LETTERS = 24  # letters of a study's name
MEAN: Look = (INK, "D")


@dataclass(frozen=True)
class Point:
    """What one study shows of a pair, or of the mean over pairs: per cent."""

    name: str  # of the study
    loss: Quantity
    change: Quantity  # of the slowdown against the baseline's
    verdict: str


@dataclass(frozen=True)
class Group:
    """A pair with its studies."""

    title: str
    look: Look
    points: tuple[Point, ...]


def draw(compared: Compared) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the leads of both, against alone."""
    source = pd.concat([compared.leads(partitioned=False), compared.leads(partitioned=True)], ignore_index=True)
    known = records(source[source["slowdown_a"].notna() & source["slowdown_b"].notna()])
    with styled():
        if not known:
            return empty_figure("A and B have no lead's loss against alone in common.", compared.origin), source
        return _figure(compared, _chosen(known), len(known)), source


def _chosen(rows: Sequence[Row]) -> list[Row]:
    """All rows without a partition as far as they fit, and evenly spaced ones of the others."""
    first = [row for row in rows if row["partition_a"] == UNMANAGED][:ROWS]
    rest = [row for row in rows if row["partition_a"] != UNMANAGED]
    return first + evenly(rest, ROWS - len(first))


def _figure(compared: Compared, rows: list[Row], known: int) -> Figure:
    names = [_name(row) for row in rows]
    heights = [max(ROW, 0.08 + LINE * (name.count("\n") + 1)) for name in names]
    sheet = Sheet(Origin(compared.origin), head=0.36)
    losses, changes = pair_of_axes(sheet, LEFT, sum(heights), compared.margin)
    places = [sum(heights[:index]) + own / 2 for index, own in enumerate(heights)]
    losses.set_yticks(places, names)
    looks = looks_in_order(compared.antagonists, [row["antagonists"] for row in rows])
    for place, row in zip(places, rows, strict=True):
        look = looks[row["antagonists"]]
        found = {letter: Quantity.loss(row, f"slowdown_{letter}", "%") for letter in SHIFTS}
        values = [loss.value for loss in found.values()]
        losses.plot(values, [place, place], color="#c4c4c4", linewidth=1.0, zorder=1)
        for letter, loss in found.items():
            own = (GREY, look[1]) if letter == "a" else look
            certain_dot(losses, place + SHIFTS[letter] * ROW, loss, own, f"{letter.upper()}, {_who(row)}: {{}}")
        bold = row["verdict"].startswith(("loses", "differs"))
        verdict(changes, place, row["verdict"], INK, bold)
        certain_dot(changes, place, change(row), look, f"{_who(row)}: slowdown {{}} above A's; {row['verdict']}")
    losses.set_xlabel("loss of the lead against alone (%)")
    changes.set_xlabel("slowdown in B above A's (%)")
    sides = ((compared.a, GREY, ""), (compared.b, INK, ", in its antagonist's colour"))
    keys = [
        legend_key(f"{side.letter} ({' and '.join(side.platforms)}){how}", (colour, ""), line="-")
        for side, colour, how in sides
    ]
    losses.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.3)
    return sheet.finish(_key(compared, rows, known))


def pair_of_axes(sheet: Sheet, left: float, high: float, margin: float) -> tuple[Axes, Axes]:
    """What is lost, and beside it the changes with the margin; the rows are placed in inches from above."""
    wide = (PAGE - left - BETWEEN - RIGHT) / 2
    losses, changes = sheet.beside(high, (left, wide), (left + wide + BETWEEN, wide))
    for axes in (losses, changes):
        rows_of(axes, [], at_zero=0.0)
        axes.set_ylim(high, 0)
        axes.locator_params(axis="x", nbins=6)
        axes.margins(x=0.06)
    changes.axvspan(100 * (1 / (1 + margin) - 1), 100 * margin, color=BAND, linewidth=0, zorder=0)
    sheet.skip(UNDER)
    return losses, changes


def verdict(axes: Axes, place: float, words: str, colour: str, bold: bool) -> None:
    """What was found, beside the axes."""
    style: Any = {"va": "center", "fontsize": 6.8, "color": colour, "fontweight": "bold" if bold else "normal"}
    axes.text(1.03, place, words, transform=axes.get_yaxis_transform(), **style)


def certain_dot(axes: Axes, y: float, found: Quantity, look: Look, said: str) -> None:
    """A value with its interval; hollow where it has none, and nothing where there is no value."""
    if not math.isnan(found.value):
        bar(axes, y, found.low, found.high, look[0], width=1.4, zorder=2)
        dot(axes, found.value, y, look, said.format(found), hollow=not found.known, size=3.6, zorder=3)


def _name(row: Row) -> str:
    who = broken(f"{row['lead']} + {row['antagonists']}" if row["antagonists"] else row["lead"], 26)
    if row["partition_a"] == UNMANAGED:
        return who
    return f"{who}\n{broken('@' + row['partition_a'], 25)}" + ("" if row["masks"] == "same" else "*")


def _who(row: Row) -> str:
    beside = f" beside {row['antagonists'].replace('+', ' + ')}" if row["antagonists"] else ""
    return f"{row['lead']}{beside}" + ("" if row["partition_a"] == UNMANAGED else f" under {row['partition_a']}")


def _key(compared: Compared, rows: list[Row], known: int) -> str:
    counts = [
        f"{min(values)} to {max(values)}" if min(values) != max(values) else f"{values[0]}"
        for values in ([int(row[f"launches_{letter}"]) for row in rows] for letter in SHIFTS)
    ]
    parts = [f"bars: 95 % {compared.between} ({counts[0]} launches of A, {counts[1]} of B), on the right Welch's t"]
    parts.append(f"band: margin of ±{100 * compared.margin:.3g} %")
    parts += ["words: p < 0.05 after Holm's adjustment, or inside the margin"]
    named = [(row, name) for row in rows for name in ("slowdown_a", "slowdown_b", "ratio")]
    hollow = any(math.isnan(row[f"{name}_low"]) and not math.isnan(row[name]) for row, name in named)
    parts += ["hollow: fewer than three launches, no interval"] if hollow else []
    parts += ["*: its masks are not the same in B"] if any(row["masks"] == "differ" for row in rows) else []
    parts += [f"{known - len(rows)} more rows are in the CSV"] if known > len(rows) else []
    sides = [f"{side.letter}: {' and '.join(side.platforms)}, study {side.name}" for side in (compared.a, compared.b)]
    return f"{'; '.join(parts)} · {' · '.join(sides)}"


def draw_several(several: Several) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the leads of all studies against alone, without a partition."""
    source = several.table
    source = source[(source["where"] == "both") & (source["role"] == "lead") & (source["baseline"] == "alone")]
    source = source[source["partition_a"] == UNMANAGED]
    groups = _groups(several, records(source))
    with styled():
        if not groups:
            return empty_figure("The studies have no lead's loss against alone in common.", several.origin), source
        room = max(1, STUDIES // len(several.studies))
        return _of_several(several, groups[:room], len(groups)), source


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
    groups.sort(
        key=lambda group: -group.points[0].loss.value if not math.isnan(group.points[0].loss.value) else math.inf
    )
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
        points.append(
            Point(f"{row['letter']}  {names[row['letter']]}", Quantity.loss(row, unit="%"), change(row), verdict)
        )
    return [Group(f"geometric mean of {rows[0]['pairs']} mixes", MEAN, tuple(points))]


def _other(row: Row) -> Point:
    point = _point(row["letter"], row["study_b"], row, "b")
    return Point(point.name, point.loss, change(row), verdict_in(row["verdict"], row["letter"]))


def _point(letter: str, name: str, row: Row, side: str) -> Point:
    return Point(f"{letter}  {name}", Quantity.loss(row, f"slowdown_{side}", "%"), Quantity(math.nan), "")


def _of_several(several: Several, groups: list[Group], known: int) -> Figure:
    sheet = Sheet(Origin(several.origin), head=0.12)
    heights = [HEAD + STUDY * len(group.points) + GAP for group in groups]
    losses, changes = pair_of_axes(sheet, NAMES, sum(heights), several.margin)
    for place, group in enumerate(groups):
        _draw_group(losses, changes, sum(heights[:place]), group)
    losses.set_xlabel("loss of the lead against alone (%)")
    changes.set_xlabel("slowdown above the baseline's (%)")
    parts = [f"bars: 95 % {several.between}, on the right Welch's t"]
    parts.append(f"band: margin of ±{100 * several.margin:.3g} %")
    parts.append("words: p < 0.05 after Holm's adjustment over mixes and studies, or inside the margin")
    hollow = any(math.isnan(point.loss.low) for group in groups for point in group.points)
    parts += ["hollow: fewer than three launches, no interval"] if hollow else []
    parts += [f"{known - len(groups)} more mixes are in the CSV"] if known > len(groups) else []
    return sheet.finish("; ".join(parts))


def _draw_group(losses: Axes, changes: Axes, top: float, group: Group) -> None:
    names: Any = {"transform": losses.get_yaxis_transform(), "va": "center"}
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    left = -(NAMES - 0.1) / inches_of(losses)[0]
    losses.text(left, top + HEAD / 2, group.title, fontsize=7.2, fontweight="bold", bbox=white, **names)
    for place, point in enumerate(group.points):
        y = top + HEAD + STUDY * (place + 0.5)
        losses.text(-0.03, y, squeezed(point.name, LETTERS, 1), ha="right", fontsize=6.8, **names)
        who = f"{point.name.replace('  ', ', ')}, {group.title}"
        certain_dot(losses, y, point.loss, group.look, f"{who}: loss {{}}")
        certain_dot(changes, y, point.change, group.look, f"{who}: slowdown above the baseline's {{}}")
        words, colour = (point.verdict, INK) if place else ("baseline", GREY)
        verdict(changes, y, words, colour, point.verdict in (MORE, LESS))
