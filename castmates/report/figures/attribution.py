"""The figure `attribution`: a waterfall for each pair of what its program loses, in points of its rate alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import LOSS, NO_LOSS, TOO_FEW, UNCLEAR
from castmates.analysis.partitions.attribution_parts import BUSY, SHARING, TOTAL
from castmates.report.figures.antagonists import looks, user_first
from castmates.report.figures.panels import SmallPrint, axes_at, drawing, finish, fitting, inches_of, small_print
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, badge_room, squeezed
from castmates.report.figures.values import with_value
from castmates.report.results import Results
from castmates.report.text import attribution
from castmates.report.text.attribution import Row
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, number, units

FIGURE = {"title": "What each loss consists of", "part": "why", "place": 190}
LINE, GAP = 0.165, 0.1  # inches: a bar's line, between two pairs
WHO, PART, NUMBERS = 1.9, 1.62, 1.25  # inches for the pair, for the name of the part, for the numbers beside the bars
LETTERS = 32  # of a line of a pair's name
HEAD, FOOT = 0.22, 0.42  # inches above and below the bars
MOST_TOLD = 8  # pairs in the alternative text
HOLLOW = (TOO_FEW, UNCLEAR, NO_LOSS)  # verdicts of bars that claim nothing
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
MOST_TICKS, TICK = 7, 0.3  # at most; inches between two
TOTAL_COLOUR, BUSY_COLOUR = "#7f7f7f", "#c4c4c4"


@dataclass(frozen=True)
class Panel:
    """One pair on one platform: its bars from above, each with the loss at which it begins."""

    who: str
    about: str  # how its parts were separated, where pairs differ in that
    colour: str
    bars: list[tuple[float, Row]]
    fewer: str  # of how many of the rounds the total is

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return GAP + LINE * len(self.bars)

    def name(self, row: Row) -> str:
        """What stands beside a bar."""
        few = f" ({self.fewer})" if self.fewer and row["part"] == TOTAL else ""
        return f"{row['part']}{few}" + (" †" if row["possibly_biased"] else "")


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.attribution, lacking, lambda: _figure(_known(results), results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    return "" if _known(results) else f"No loss is known in the study {results.name}."


def in_short(results: Results) -> str:
    """The line in whose fold the figure stands: without partitions there is little to tell apart."""
    known = _known(results)
    if not known or any(total["partition"] for total, _ in known):
        return ""
    parts = {
        part: [row for _, own in known for row in own if row["part"] == part and row["launches"]]
        for part in (BUSY, SHARING)
    }
    busy = [round(row["points"], 1) for row in parts[BUSY] if row["verdict"] == LOSS]
    if not busy or len(busy) < len(parts[BUSY]):
        return "What each loss consists of: a placebo in the antagonist's place, and what its work adds"
    low, high = number(min(busy)), number(max(busy))
    between = f"{low} points" if low == high else f"{low} to {high} points"
    start = f"What each loss consists of: a placebo in the antagonist's place costs {between}"
    proven = sum(row["verdict"] == LOSS for row in parts[SHARING])
    if proven == len(parts[SHARING]):
        return f"{start}, its work the rest"
    return f"{start}; what its work adds is proven for {proven or 'none'} of {counted(len(parts[SHARING]), 'mix')}"


def _known(results: Results) -> list[tuple[Row, list[Row]]]:
    """The pairs with a loss, by program in the study's order."""
    known = [(total, own) for total, own in attribution.mixes(results) if total["launches"]]
    order = user_first(results, [total["lead"] for total, _ in known])
    return sorted(known, key=lambda pair: order.index(pair[0]["lead"]))


def _figure(known: list[tuple[Row, list[Row]]], results: Results) -> Figure:
    panels = _panels(_drawn(known), results)
    notes = _key(known, len(known) - len(panels), panels, results)
    head, foot = HEAD + badge_room(caveat(results), PAGE), FOOT + 0.115 * len(notes)
    tall = sum(panel.height for panel in panels)
    height = head + tall + foot
    figure = Figure(figsize=(PAGE, height))
    axes = axes_at(figure, WHO + PART, height - head - tall, PAGE - WHO - PART - NUMBERS, tall)
    _ticks(axes, *_reach(panels))
    _paint(axes, panels, tall)
    axes.set_xlabel("loss, % of the rate alone", labelpad=2)
    figure.text(
        1 - 0.05 / PAGE, 1 - (head - 0.04) / height, "points of the rate alone", fontsize=SMALL, color=GREY, ha="right",
        va="bottom",
    )  # fmt: skip
    return finish(figure, notes, results)


def _drawn(known: list[tuple[Row, list[Row]]]) -> list[tuple[Row, list[Row]]]:
    """All pairs in their order; if they do not fit on a page those with the largest losses."""
    heights = [GAP + LINE * (1 + len(attribution.leaves(own))) for _, own in known]
    room = fitting(sorted(heights, reverse=True), around=1.2)
    if room >= len(known):
        return known
    least = sorted((total["points"] for total, _ in known), reverse=True)[room - 1]
    return [pair for pair in known if pair[0]["points"] >= least][:room]


def _panels(drawn: list[tuple[Row, list[Row]]], results: Results) -> list[Panel]:
    colours = looks(results, [total["antagonists"] for total, _ in drawn])
    several = len(results.platforms) > 1
    how = {attribution.isolation(total) for total, _ in drawn}
    panels = []
    told: set[tuple[object, ...]] = set()
    for total, own in drawn:
        bars, begin = [], 0.0
        for row in attribution.leaves(own):
            fact = (row["lead"], row["platform"], row["part"], row["points"], *attribution.ends(row))
            if row["part"] != BUSY or fact not in told:
                bars.append((begin, row))
            told.add(fact)
            begin += row["points"]
        who = attribution.who(total) + (f" ({total['platform']})" if several else "")
        about = f"{total['partition']} ({attribution.ways(total)})" if total["partition"] and len(how) > 1 else ""
        colour = colours[total["antagonists"]][0]
        panels.append(Panel(who, about, colour, [*bars, (0.0, total)], attribution.fewer_rounds(results, total)))
    return panels


def _reach(panels: Sequence[Panel]) -> tuple[float, float]:
    """The smallest and the largest loss that is drawn, with what leaves whiskers whole."""
    ends = [0.0]
    for panel in panels:
        for begin, row in panel.bars:
            ends += [begin, begin + row["points"], *(end for end in _whisker(begin, row) if not math.isnan(end))]
    room = 0.03 * (max(ends) - min(ends)) or 0.01
    return min(ends) - room, max(ends) + room


def _whisker(begin: float, row: Row) -> tuple[float, float]:
    """Where the interval lies that stands beside the bar."""
    low, high = attribution.ends(row)
    return begin + low, begin + high


def _paint(axes: Axes, panels: Sequence[Panel], inches: float) -> None:
    """Draw the pairs from above; heights are in inches."""
    axes.set_ylim(inches, 0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.5, zorder=0)
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    place, ticks, labels = 0.0, [], []
    for number_, panel in enumerate(panels):
        if number_:
            axes.axhline(place + GAP / 2, xmin=-3, xmax=2, color="#e4e4e4", linewidth=0.5, clip_on=False)
        place += GAP
        _who(axes, panel, place)
        for index, (begin, row) in enumerate(panel.bars):
            _bar(axes, panel, begin, row, place + LINE / 2, linked=index + 1 < len(panel.bars))
            ticks.append(place + LINE / 2)
            labels.append(panel.name(row))
            place += LINE
    axes.set_yticks(ticks, labels, fontsize=SMALL)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.set_axisbelow(True)


def _who(axes: Axes, panel: Panel, place: float) -> None:
    """The pair, at the left edge of the figure."""
    lines = len(panel.bars)
    name = squeezed(panel.who, LETTERS, max(1, lines - bool(panel.about)))
    at: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "top",
        "annotation_clip": False,
    }
    left = -72 * (WHO + PART - 0.1)
    axes.annotate(name, (0, place), xytext=(left, -2), fontsize=7.5, **at)
    if panel.about:
        below = place + LINE * (name.count("\n") + 1)
        axes.annotate(panel.about, (0, below), xytext=(left, -2), fontsize=SMALL, color=GREY, **at)


def _bar(axes: Axes, panel: Panel, begin: float, row: Row, middle: float, linked: bool) -> None:
    colour = {TOTAL: TOTAL_COLOUR, BUSY: BUSY_COLOUR}.get(row["part"], panel.colour)
    end = begin + row["points"]
    (bar,) = axes.barh(
        middle, row["points"], left=begin, height=LINE * 0.62, color="white" if row["verdict"] in HOLLOW else colour,
        edgecolor=colour, linewidth=0.8, zorder=2,
    )  # fmt: skip
    if linked:
        axes.plot([end, end], [middle, middle + LINE], color=GREY, linewidth=0.5, zorder=1)
    low, high = _whisker(begin, row)
    if not math.isnan(low):
        style = (0, (2, 1.2)) if math.isnan(row["points_low"]) else "-"
        axes.plot([low, high], [middle, middle], color=INK, linewidth=0.9, linestyle=style, zorder=3)
    ends = attribution.ends(row)
    words = number(row["points"]) + ("" if math.isnan(ends[0]) else f" {interval(*ends)}")
    with_value(bar, f"{panel.who}, {panel.name(row)}: {words} points, {row['verdict']}")
    axes.annotate(
        words, (1, middle), xycoords=("axes fraction", "data"), xytext=(72 * (NUMBERS - 0.05), 0),
        textcoords="offset points", fontsize=SMALL, ha="right", va="center", annotation_clip=False,
    )  # fmt: skip


def _ticks(axes: Axes, low: float, high: float) -> None:
    """Round numbers of per cent."""
    axes.set_xlim(low, high)
    inch = (high - low) / inches_of(axes)[0]
    for step in STEPS:
        values = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(values) <= MOST_TICKS and step >= TICK * inch:
            break
    axes.set_xticks(values, [number(value, 0 if step >= 1 else 1) for value in values])


def _key(known: list[tuple[Row, list[Row]]], left_out: int, panels: list[Panel], results: Results) -> SmallPrint:
    rows: list[Row] = [row for total, own in known for row in (total, *own)]
    how = [reason for reason, _ in attribution.separations(results)]
    parts = ["the bars of a mix add up from above to its total"]
    if any(all(row["part"] != BUSY for _, row in panel.bars) for panel in panels):
        parts.append("where several mixes lose the same to a busy antagonist, it is drawn for the first of them")
    parts += ["lines: 95 % between launches"] if any(not math.isnan(row["points_low"]) for row in rows) else []
    parts += (
        ["dashed, and numbers beside: within launch only"] if any(math.isnan(row["points_low"]) for row in rows) else []
    )
    there = [verdict for verdict in HOLLOW if any(row["verdict"] == verdict for row in rows)]
    parts += [f"hollow: {', or '.join(there)}"] if there else []
    if any(panel.fewer for panel in panels):
        chosen = any(total["launches_choosing"] for total, _ in known)
        which = "the others chose the partition" if chosen else "those in which every stage was measured"
        parts.append(f"in brackets: of how many {'launches' if chosen else 'rounds'} a total is, {which}")
    parts += ["†: possibly biased by rejected windows"] if any(row["possibly_biased"] for row in rows) else []
    parts += [f"the {len(known) - left_out} largest losses; {left_out} more are in the CSV"] if left_out else []
    parts += how if len(how) == 1 else []
    return small_print(PAGE, "; ".join(parts), results)


def caption(results: Results) -> str:
    """What stands below the figure: what its parts are, and how many launches."""
    known = [total for total, _ in _known(results)]
    launches = units(total["launches"] for total in known)
    chosen = any(total["launches_choosing"] for total in known)
    masked = any(total["partition"] for total in known)
    parts = (
        "Own smaller share: fewer ways, nothing beside it. Despite own ways: what is lost to an antagonist that has "
        "other ways. Cache capacity: what separate ways give back. "
        if masked
        else "Sharing: what the antagonist's own work adds, cache, memory and all else together. "
    )
    return (
        f"In points of the rate alone, with 95 % t intervals between launches ({launches})."
        f" Busy antagonist: a placebo on the antagonist's CPUs. {parts}"
        + ("The partition was chosen on other launches than those. " if chosen else "")
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    known = _known(results)
    parts = []
    for total, own in known[:MOST_TOLD]:
        pieces = [f"{row['part']} {number(row['points'])}" for row in attribution.leaves(own)]
        parts.append(f"{attribution.who(total)} {number(total['points'])} points: {', '.join(pieces) or 'not divided'}")
    more = f"; and {counted(len(known) - MOST_TOLD, 'more pair')}" if len(known) > MOST_TOLD else ""
    return (
        f"What the losses consist of, in points of the rate alone. {'; '.join(parts)}{more}."
        if parts
        else "No loss is known."
    )
