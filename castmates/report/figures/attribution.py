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
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, inches_of, lines_across, without_axis
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, squeezed
from castmates.report.results import Results
from castmates.report.text import attribution
from castmates.report.text.attribution import Row
from castmates.report.text.words import Quantity, counted, number, units

FIGURE = {"title": "What each loss consists of", "part": "why", "place": 190, "needs": "PLACEBO"}
LINE, GAP = 0.165, 0.1  # inches: a bar's line, between two pairs
WHO, PART, NUMBERS = 1.9, 1.62, 1.25  # inches for the pair, for the name of the part, for the numbers beside the bars
LETTERS = 32  # of a line of a pair's name
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

    def name(self, row: Row) -> str:
        """What stands beside a bar."""
        few = f" ({self.fewer})" if self.fewer and row["part"] == TOTAL else ""
        return f"{row['part']}{few}" + (" †" if row["possibly_biased"] else "")


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.attribution, lacking, lambda: _figure(_known(results), results))


def lacking(results: Results) -> str:
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


def _figure(known: list[tuple[Row, list[Row]]], results: Results) -> Figure:
    panels = _panels(_drawn(known), results)
    sheet = Sheet(results, head=0.2)
    right: Any = {"fontsize": SMALL, "color": GREY, "ha": "right", "va": "bottom"}
    sheet.text(PAGE - 0.05, sheet.top - 0.02, "points of the rate alone", **right)
    axes = sheet.panel(sum(GAP + LINE * len(panel.bars) for panel in panels), WHO + PART, NUMBERS)
    _ticks(axes, panels)
    _paint(axes, panels)
    axes.set_xlabel("loss, % of the rate alone", labelpad=2)
    sheet.skip(UNDER)
    return sheet.finish("; ".join(_key(known, panels, results)))


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


def _ticks(axes: Axes, panels: Sequence[Panel]) -> None:
    """Round numbers of per cent, over all that is drawn, with what leaves whiskers whole."""
    ends = [0.0]
    for begin, row in (each for panel in panels for each in panel.bars):
        ends += [begin, begin + row["points"]]
        ends += [begin + end for end in attribution.ends(row) if not math.isnan(end)]
    room = 0.03 * (max(ends) - min(ends)) or 0.01
    low, high = min(ends) - room, max(ends) + room
    axes.set_xlim(low, high)
    inch = (high - low) / inches_of(axes)[0]
    for step in STEPS:
        values = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(values) <= MOST_TICKS and step >= TICK * inch:
            break
    axes.set_xticks(values, [number(value, 0 if step >= 1 else 1) for value in values])


def _paint(axes: Axes, panels: Sequence[Panel]) -> None:
    """Draw the pairs from above; heights are in inches."""
    axes.set_ylim(inches_of(axes)[1], 0)
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    at: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "annotation_clip": False,
    }
    place, ticks, labels = 0.0, [], []
    for panel in panels:
        if panel is not panels[0]:
            axes.axhline(place + GAP / 2, xmin=-3, xmax=2, color="#e4e4e4", linewidth=0.5, clip_on=False)
        place += GAP
        name = squeezed(panel.who, LETTERS, max(1, len(panel.bars) - bool(panel.about)))
        left: Any = {"xytext": (-72 * (WHO + PART - 0.1), -2), "va": "top"} | at
        axes.annotate(name, (0, place), fontsize=7.5, **left)
        below = place + LINE * (name.count("\n") + 1)
        axes.annotate(panel.about, (0, below), fontsize=SMALL, color=GREY, **left)
        for begin, row in panel.bars:
            middle, linked = place + LINE / 2, row is not panel.bars[-1][1]
            words = _bar(axes, panel, begin, row, middle, linked)
            right: Any = {"xytext": (72 * (NUMBERS - 0.05), 0), "ha": "right", "va": "center", "fontsize": SMALL} | at
            axes.annotate(words, (1, middle), **right)
            ticks.append(middle)
            labels.append(panel.name(row))
            place += LINE
    axes.set_yticks(ticks, labels, fontsize=SMALL)
    without_axis(axes)
    axes.tick_params(axis="y", pad=2)
    lines_across(axes, "x")


def _bar(axes: Axes, panel: Panel, begin: float, row: Row, middle: float, linked: bool) -> str:
    """Draw a part of a loss; what is said of it."""
    colour = {TOTAL: TOTAL_COLOUR, BUSY: BUSY_COLOUR}.get(row["part"], panel.colour)
    face, end = "white" if row["verdict"] in HOLLOW else colour, begin + row["points"]
    style: Any = {"height": LINE * 0.62, "color": face, "edgecolor": colour, "linewidth": 0.8}
    (drawn,) = axes.barh(middle, row["points"], left=begin, zorder=2, **style)
    if linked:
        axes.plot([end, end], [middle, middle + LINE], color=GREY, linewidth=0.5, zorder=1)
    ends = attribution.ends(row)
    line = WITHIN_LAUNCH if math.isnan(row["points_low"]) else "-"
    bar(axes, middle, begin + ends[0], begin + ends[1], INK, width=0.9, line=line)
    words = str(Quantity(row["points"], *ends))
    with_value(drawn, f"{panel.who}, {panel.name(row)}: {words} points, {row['verdict']}")
    return words


def _key(known: list[tuple[Row, list[Row]]], panels: list[Panel], results: Results) -> list[str]:
    rows: list[Row] = [row for total, own in known for row in (total, *own)]
    how = [reason for reason, _ in attribution.separations(results)]
    parts = ["the bars of a mix add up from above to its total"]
    if any(all(row["part"] != BUSY for _, row in panel.bars) for panel in panels):
        parts.append("where several mixes lose the same to a busy antagonist, it is drawn for the first of them")
    unknown = [math.isnan(row["points_low"]) for row in rows]
    parts += [] if all(unknown) else ["lines: 95 % between launches"]
    parts += ["dashed, and numbers beside: within launch only"] if any(unknown) else []
    there = [verdict for verdict in HOLLOW if any(row["verdict"] == verdict for row in rows)]
    parts += [f"hollow: {', or '.join(there)}"] if there else []
    if any(panel.fewer for panel in panels):
        chosen = any(total["launches_choosing"] for total, _ in known)
        which = "the others chose the partition" if chosen else "those in which every stage was measured"
        parts.append(f"in brackets: of how many {'launches' if chosen else 'rounds'} a total is, {which}")
    parts += ["†: possibly biased by rejected windows"] if any(row["possibly_biased"] for row in rows) else []
    more = len(known) - len(panels)
    parts += [f"the {len(panels)} largest losses; {more} more are in the CSV"] if more else []
    return parts + (how if len(how) == 1 else [])


def caption(results: Results) -> str:
    """What stands below the figure: what its parts are, and how many launches."""
    known = [total for total, _ in _known(results)]
    parts = "Sharing: what the antagonist's own work adds, cache, memory and all else together. "
    if any(total["partition"] for total in known):
        parts = (
            "Own smaller share: fewer ways, nothing beside it. Despite own ways: what is lost to an antagonist that "
            "has other ways. Cache capacity: what separate ways give back. "
        )
    chosen = any(total["launches_choosing"] for total in known)
    return (
        f"In points of the rate alone, with 95 % t intervals between launches "
        f"({units(total['launches'] for total in known)})."
        f" Busy antagonist: a placebo on the antagonist's CPUs. {parts}"
        + ("The partition was chosen on other launches than those. " if chosen else "")
    )


def alternative(results: Results) -> str:
    known = _known(results)
    parts = []
    for total, own in known[:MOST_TOLD]:
        pieces = [f"{row['part']} {number(row['points'])}" for row in attribution.leaves(own)]
        parts.append(f"{attribution.who(total)} {number(total['points'])} points: {', '.join(pieces) or 'not divided'}")
    more = f"; and {counted(len(known) - MOST_TOLD, 'more pair')}" if len(known) > MOST_TOLD else ""
    told = f"What the losses consist of, in points of the rate alone. {'; '.join(parts)}{more}."
    return told if parts else "No loss is known."


def _known(results: Results) -> list[tuple[Row, list[Row]]]:
    """The pairs with a loss, by program in the study's order."""
    known = [(total, own) for total, own in attribution.mixes(results) if total["launches"]]
    order = user_first(results, [total["lead"] for total, _ in known])
    return sorted(known, key=lambda pair: order.index(pair[0]["lead"]))
