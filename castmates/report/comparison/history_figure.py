"""The figure `history`: what each lead loses beside each antagonist, study by study in the order of time.

A panel per lead; colour and marker are the antagonist's. A line joins studies of one machine only.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import pandas as pd
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.comparison.compared import Several
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.marks import bar, dot, with_ends
from castmates.report.figures.sheet import PANELS, Origin, Room, Sheet, empty_figure, lines_across, spread_labels
from castmates.report.figures.style import GREY, SMALL, Look, broken, styled
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss

DAY = 86_400
NARROW = 1 / 25  # of the whole time: where studies are closer, all are set apart evenly, in order
SHIFT = 0.012  # of the axis, by which antagonists are set apart
NOTES = "bars: 95 % between launches of each study by itself; a line joins studies of one machine"
EVENLY = "; studies are in the order of time, their distances are not"
ROOM = Room(axes=1.5, above=0.08, below=0.42, left=0.55, right=0.85)


def draw(several: Several) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = several.history
    with styled():
        if source["date"].nunique() < 2:
            return empty_figure("Fewer than two of the studies have a date.", several.origin), source
        return _figure(several, records(source)), source


def _figure(several: Several, rows: Sequence[Row]) -> Figure:
    leads = list(dict.fromkeys(row["lead"] for row in rows))
    looks = looks_in_order(several.antagonists, [row["antagonists"] for row in rows])
    places, dated = _places(rows)
    ends = [as_loss(row[name]) for row in rows for name in ("slowdown", "slowdown_low", "slowdown_high")]
    known = [0.0, *(end for end in ends if not math.isnan(end))]
    room = 0.06 * (max(known) - min(known)) or 1.0
    sheet = Sheet(Origin(several.origin))
    for axes, lead in zip(sheet.grid(leads[:PANELS], ROOM), leads, strict=False):
        axes.set_ylim(min(known) - room, max(known) + 2 * room)
        _panel(axes, [row for row in rows if row["lead"] == lead], looks, places)
        _dates(axes, rows, places, dated)
    sheet.labels("", "loss against alone (%)")
    more = f"; {len(leads) - PANELS} more leads are in the CSV" if len(leads) > PANELS else ""
    return sheet.finish(NOTES + ("" if dated else EVENLY) + more)


def _panel(axes: Axes, rows: Sequence[Row], looks: dict[str, Look], places: dict[str, float]) -> None:
    span = max(places.values()) - min(places.values())
    axes.set_xlim(min(places.values()) - 0.08 * span, max(places.values()) + 0.08 * span)
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    lines_across(axes, "y")
    labels = []
    for place, (name, look) in enumerate(looks.items()):
        own = [row for row in rows if row["antagonists"] == name]
        shift = SHIFT * span * (place - (len(looks) - 1) / 2)
        for line in _of_one_machine(own):
            at = [places[row["letter"]] + shift for row in line]
            values = [as_loss(row["slowdown"]) for row in line]
            axes.plot(at, values, color=look[0], linewidth=0.8, alpha=0.6, zorder=2)
            for x, y, row in zip(at, values, line, strict=True):
                _dot(axes, x, y, row, look)
        if own:
            labels.append((as_loss(own[-1]["slowdown"]), broken(name.replace("+", " + ") or "alone", 16), look[0]))
    spread_labels(axes, labels)


def _places(rows: Sequence[Row]) -> tuple[dict[str, float], bool]:
    """Where each study stands on the axis, and whether that is its date: else studies are set apart evenly."""
    days = {
        row["letter"]: datetime.fromisoformat(row["date"]).timestamp() / DAY for row in rows
    }  # as matplotlib counts
    ordered = sorted(days, key=lambda letter: days[letter])
    times = [days[letter] for letter in ordered]
    span = times[-1] - times[0]
    if span and min(later - earlier for earlier, later in pairwise(times)) >= NARROW * span:
        return days, True
    return {letter: float(place) for place, letter in enumerate(ordered)}, False


def _of_one_machine(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each machine and platform, in the order of time."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["host"], row["platform"]), []).append(row)
    return list(lines.values())


def _dot(axes: Axes, x: float, y: float, row: Row, look: Look) -> None:
    low, high = as_loss(row["slowdown_low"]), as_loss(row["slowdown_high"])
    bar(axes, x, low, high, look[0], width=1.3, upright=True)
    beside = f" beside {row['antagonists'].replace('+', ' + ')}" if row["antagonists"] else ""
    words = f"{row['letter']}, {row['study']}, {row['date'][:10]}: {row['lead']}{beside} {with_ends(y, low, high)}"
    dot(axes, x, y, look, words, hollow=math.isnan(low), size=3.8)


def _dates(axes: Axes, rows: Sequence[Row], places: dict[str, float], dated: bool) -> None:
    """The axis of time, with the letter of each study; where studies are set apart evenly, with its date too."""
    if not dated:
        days = {row["letter"]: str(row["date"])[:10] for row in rows}
        axes.set_xticks(list(places.values()), [f"{letter}\n{days[letter]}" for letter in places])
        return
    locator = dates.AutoDateLocator(minticks=3, maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    for letter, place in places.items():
        axes.text(
            place, 0.99, letter, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=SMALL, color=GREY
        )
