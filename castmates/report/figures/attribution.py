"""The figure `attribution`: a waterfall for each mix of what its lead loses, in log terms that are read in per cent."""

import math
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.partitions import attribution_parts
from castmates.report.figures.panels import axes_at, finish, inches_of
from castmates.report.figures.style import (
    COLOURS,
    COLUMN,
    GREY,
    INK,
    PAGE,
    SMALL,
    SMALL_LETTER,
    badge_room,
    empty_figure,
    stamp,
    styled,
)
from castmates.report.results import Results
from castmates.report.text import attribution
from castmates.report.text.attribution import Row
from castmates.report.text.stamps import caveat
from castmates.report.text.words import interval, number, units

MIXES, LONE_COLUMN = 24, 6  # drawn at most; in a single column at most
LINE, GAP = 0.155, 0.1  # inches: a bar's line, between two mixes
NUMBERS = 1.17  # inches for the numbers beside the bars
MOST_TOLD = 8  # mixes in the alternative text
HOLLOW = {  # verdicts of bars that claim nothing
    "too few blocks": "too few launches to tell",
    "unclear": "unclear (Holm-adjusted)",
    "equivalent": "within the margin",
}
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
MOST_TICKS, TICK = 6, 0.27  # at most; inches between two
LOOKS = {
    attribution_parts.BUSY: COLOURS[4],
    attribution_parts.NEIGHBOUR: COLOURS[4],
    attribution_parts.NOT_GIVEN_BACK: COLOURS[1],
    attribution_parts.OWN: COLOURS[5],
    attribution_parts.DESPITE: COLOURS[1],
    attribution_parts.CAPACITY: COLOURS[0],
    attribution_parts.SHARING: COLOURS[3],
    attribution_parts.TOTAL: "#7f7f7f",
}


@dataclass(frozen=True)
class Panel:
    """One mix on one platform: its bars from above, each with the loss at which it begins."""

    title: list[str]
    about: list[str]
    bars: list[tuple[float, Row]]

    @property
    def lines(self) -> int:
        """Lines of text above the bars."""
        return len(self.title) + len(self.about)

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return GAP + LINE * 0.8 * self.lines + LINE * len(self.bars)


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    table = results.attribution
    known = [(total, own) for total, own in attribution.mixes(results) if total["blocks"]]
    with styled():
        if not known:
            return empty_figure(f"No loss is known in the study {results.name}.", caveat(results)), table
        return _figure(known, results), table


def _figure(known: list[tuple[Row, list[Row]]], results: Results) -> Figure:
    across = 1 if len(known) <= LONE_COLUMN else 2
    width = COLUMN if across == 1 else PAGE
    letters = int((width / across - 0.15) / SMALL_LETTER)
    drawn = _drawn(known)
    abouts = {attribution.isolation(total) for total, _ in drawn}
    common = abouts.pop() if len(drawn) > 1 and len(abouts) == 1 else ""  # said once, at the foot
    panels = [_panel(total, own, 0 if common else letters, int(letters * 0.85), results) for total, own in drawn]
    cut = math.ceil(len(panels) / across)
    columns = [panels[begin : begin + cut] for begin in range(0, len(panels), cut)]
    tall = max(sum(panel.height for panel in column) for column in columns)
    notes = textwrap.wrap("; ".join(filter(None, [common, _key(known, results)])), int((width - 0.15) / SMALL_LETTER))
    head, foot = 0.2 + badge_room(caveat(results), width), 0.5 + 0.11 * len(notes)
    height = head + tall + foot
    figure = Figure(figsize=(width, height))
    names = SMALL_LETTER * max(len(_name(row)) for panel in panels for _, row in panel.bars) + 0.12
    low, high = _reach(panels)
    for number_, column in enumerate(columns):
        left = number_ * width / across
        inches = sum(panel.height for panel in column)
        axes = axes_at(figure, left + names, height - head - inches, width / across - names - NUMBERS, inches)
        _ticks(axes, low, high)
        _column(axes, column, inches, names)
        figure.text(
            (left + width / across - 0.05) / width, 1 - (head - 0.04) / height, "points of the solo rate",
            fontsize=SMALL, color=GREY, ha="right", va="bottom",
        )  # fmt: skip
        figure.text(
            (left + (names + width / across - NUMBERS) / 2) / width, (height - head - inches - 0.24) / height,
            "loss of the solo rate (%), log scale", fontsize=7, ha="center", va="top",
        )  # fmt: skip
    return finish(figure, notes, caveat(results), left=0.07)


def _drawn(known: list[tuple[Row, list[Row]]]) -> list[tuple[Row, list[Row]]]:
    """All mixes in their order; of too many those with the largest losses."""
    if len(known) <= MIXES:
        return known
    least = sorted((total["points"] for total, _ in known), reverse=True)[MIXES - 1]
    return [mix for mix in known if mix[0]["points"] >= least][:MIXES]


def _panel(total: Row, own: list[Row], letters: int, width: int, results: Results) -> Panel:
    """A mix with a title of so many letters, and so many (or no line at all) for how it was told apart."""
    several = len(results.platforms) > 1
    title = attribution.who(total) + (f" ({total['platform']})" if several else "")
    bars, begin = [], 0.0
    for row in attribution.leaves(own):
        bars.append((begin, row))
        begin += row["log"]
    about = textwrap.wrap(attribution.isolation(total), letters) if letters else []
    return Panel(textwrap.wrap(title, width), about, [*bars, (0.0, total)])


def _reach(panels: list[Panel]) -> tuple[float, float]:
    """The smallest and the largest log that is drawn, with what leaves whiskers whole."""
    ends = [0.0]
    for panel in panels:
        for begin, row in panel.bars:
            ends += [begin, begin + row["log"], *(begin + end for end in _whisker(row) if not math.isnan(end))]
    room = 0.03 * (max(ends) - min(ends)) or 0.01
    return min(ends) - room, max(ends) + room


def _whisker(row: Row) -> tuple[float, float]:
    """The interval between launches; within launch where there is none."""
    if math.isnan(row["log_low"]):
        return row["within_low"], row["within_high"]
    return row["log_low"], row["log_high"]


def _column(axes: Axes, panels: list[Panel], inches: float, names: float) -> None:
    """Draw mixes from above; heights are in inches."""
    axes.set_ylim(inches, 0)
    axes.spines["left"].set_visible(False)
    place, ticks, labels = 0.0, [], []
    for panel in panels:
        place += GAP
        for line, grey in [*((text, False) for text in panel.title), *((text, True) for text in panel.about)]:
            axes.annotate(
                line, (0, place), xycoords=("axes fraction", "data"), xytext=(-72 * (names - 0.07), -1),
                textcoords="offset points", fontsize=SMALL if grey else 7.5, color=GREY if grey else INK, va="top",
                annotation_clip=False,
            )  # fmt: skip
            place += LINE * 0.8
        below = place + LINE * len(panel.bars)
        axes.vlines(axes.get_xticks(), place, below, color="#e4e4e4", linewidth=0.5, zorder=0)
        axes.vlines(0.0, place, below, color=GREY, linewidth=0.6, zorder=1)
        for index, (begin, row) in enumerate(panel.bars):
            middle = place + LINE / 2
            last = index + 1 == len(panel.bars)
            _bar(axes, begin, row, middle, "-" if not last else "")
            ticks.append(middle)
            labels.append(_name(row))
            place += LINE
    axes.set_yticks(ticks, labels, fontsize=SMALL)
    axes.tick_params(axis="y", length=0, pad=2)


def _name(row: Row) -> str:
    return f"{row['part']} †" if row["possibly_biased"] else str(row["part"])


def _bar(axes: Axes, begin: float, row: Row, middle: float, link: str) -> None:
    colour = LOOKS[row["part"]]
    hollow = row["verdict"] in HOLLOW
    end = begin + row["log"]
    axes.barh(
        middle, row["log"], left=begin, height=LINE * 0.62, color="white" if hollow else colour, edgecolor=colour,
        linewidth=0.8, zorder=2,
    )  # fmt: skip
    if link:
        axes.plot([end, end], [middle, middle + LINE], color=GREY, linewidth=0.5, zorder=1)
    low, high = _whisker(row)
    if not math.isnan(low):
        style = (0, (2, 1.2)) if math.isnan(row["log_low"]) else "-"
        axes.plot([begin + low, begin + high], [middle, middle], color=INK, linewidth=0.9, linestyle=style, zorder=3)
    ends = attribution.ends(row)
    words = number(row["points"]) + ("" if math.isnan(ends[0]) else f" {interval(*ends)}")
    axes.annotate(
        words, (1, middle), xycoords=("axes fraction", "data"), xytext=(72 * (NUMBERS - 0.05), 0),
        textcoords="offset points", fontsize=SMALL, ha="right", va="center", annotation_clip=False,
    )  # fmt: skip


def _ticks(axes: Axes, low: float, high: float) -> None:
    """Per cent at their places on the log scale."""
    axes.set_xlim(low, high)
    ends = [100 * -math.expm1(-low), 100 * -math.expm1(-high)]
    inch = (high - low) / inches_of(axes)[0]
    for step in STEPS:
        values = [step * place for place in range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)]
        places = [-math.log1p(-value / 100) for value in values]
        apart = min((right - left for left, right in pairwise(places)), default=math.inf)
        if len(values) <= MOST_TICKS + 1 and apart >= TICK * inch:
            break
    axes.set_xticks(places, [number(value, 0 if step >= 1 else 1) for value in values])


def _key(known: list[tuple[Row, list[Row]]], results: Results) -> str:
    rows: list[Any] = [row for total, own in known for row in (total, *own)]
    parts = ["bars add up from above to the total"]
    parts += ["lines: 95 % between launches"] if any(not math.isnan(row["log_low"]) for row in rows) else []
    parts += (
        ["dashed, and numbers beside: within launch only"] if any(math.isnan(row["log_low"]) for row in rows) else []
    )
    there = [word for verdict, word in HOLLOW.items() if any(row["verdict"] == verdict for row in rows)]
    parts += [f"hollow: {', or '.join(there)}"] if there else []
    parts += ["†: possibly biased by rejected windows"] if any(row["possibly_biased"] for row in rows) else []
    parts += [f"the {MIXES} largest losses; {len(known) - MIXES} more are in the CSV"] if len(known) > MIXES else []
    return f"{'; '.join(parts)} · {stamp(results.platforms, results.name)}"


def caption(results: Results) -> str:
    """What the figure shows, with what its intervals are."""
    known = [total for total, _ in attribution.mixes(results) if total["blocks"]]
    launches = units(total["blocks"] for total in known)
    chosen = any(total["blocks_choosing"] for total in known)
    return (
        "What each lead loses against solo, and to what: bars begin where those above end and add up to the total, "
        "on a log scale that is read in per cent of the solo rate. Busy neighbour: from solo to register-only loops on "
        "the antagonists' CPUs. Own smaller share: from there to the same with no more ways than under the isolating "
        "partition. Despite own ways: from there to the antagonists themselves under that partition, memory bandwidth "
        "for one. Cache capacity: from there to no partition, which is what that partition gives back. Where a stage "
        "is missing, the parts beside it are one. Lines are 95 % t intervals between launches, the numbers percentage "
        f"points of the solo rate with theirs ({launches}). "
        + ("The partition was chosen on other launches than those. " if chosen else "")
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    known = [(total, own) for total, own in attribution.mixes(results) if total["blocks"]]
    parts = []
    for total, own in known[:MOST_TOLD]:
        pieces = [f"{row['part']} {number(row['points'])}" for row in attribution.leaves(own)]
        parts.append(f"{attribution.who(total)} {number(total['points'])} points: {', '.join(pieces) or 'not divided'}")
    more = f"; and {len(known) - MOST_TOLD} more mixes" if len(known) > MOST_TOLD else ""
    return (
        f"What the losses consist of, in points of the solo rate. {'; '.join(parts)}{more}."
        if parts
        else "No loss is known."
    )
