"""The figure `mitigations`: what the program and its antagonists lose under each thing that can be done for a mix."""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import GAIN, LOSS
from castmates.analysis.partitions.mitigations import NOTHING
from castmates.report.figures.antagonists import other_looks
from castmates.report.figures.marks import bar, with_value
from castmates.report.figures.sheet import Sheet, drawing, fitting, rows_of
from castmates.report.figures.style import GREY, INK, SMALL, squeezed
from castmates.report.results import Results, records
from castmates.report.text.mitigations import Row, amount_of, name_of
from castmates.report.text.words import Quantity, counted, listed, number, plain, units
from castmates.study.cache import Cache
from castmates.study.node_classes import cache_of
from castmates.study.partitions.partitions import partitions_by_name
from castmates.study.rdt_trial import Tried
from castmates.study.spec import Partition

FIGURE = {"title": "What helps, and what it costs", "part": "losses", "place": 10, "needs": "MITIGATIONS"}
LINE, TITLE, BETWEEN = 0.3, 0.42, 0.16  # inches: a row, what stands above the rows of a mix, between two mixes
WHAT, BARS, NUMBERS = 1.68, 1.38, 1.24  # inches for the names, for the bars of one side, for the numbers beside them
BAR = 0.56  # of a row
LETTERS = 84  # of a reason
MOST_TOLD = 4  # mixes in the alternative text
PROVEN = (GAIN, LOSS)
SIDES = ("loss", "others_loss")
GREY_WORDS: Any = {"fontsize": SMALL, "color": GREY, "fontstyle": "italic", "zorder": 5}
BESIDE_ROW: Any = {
    "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "annotation_clip": False,
}  # fmt: skip
ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}


@dataclass(frozen=True)
class Panel:
    """One mix on one platform: what was tried, the best first, then what could not be."""

    title: str
    rows: list[Row]
    cache: Cache | None  # of the machine
    partitions: Mapping[str, Partition]
    tried: Tried | None  # what throttles were measured to do there

    @property
    def labels(self) -> tuple[str, str]:
        """What the bars at either side are."""
        several = "+" in self.rows[0]["antagonists"]
        antagonists = "its antagonists lose, on average (%)" if several else "its antagonist loses (%)"
        return f"{squeezed(plain(self.rows[0]['lead']), 20, 1)} loses (%)", antagonists

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return TITLE + LINE * len(self.rows) + BETWEEN

    def amount(self, row: Row) -> str:
        """How much of it was tried."""
        return amount_of(row, self.partitions.get(row["partition"]), self.cache, self.tried)


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.mitigations, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    known = results.mitigations["loss_pct"].notna().any()
    return "" if known else f"Nothing that was tried against a loss is known in the study {results.name}."


def caption(results: Results) -> str:
    rows = [row for panel in _panels(results) for row in panel.rows]
    chosen = " The best mask was chosen on other launches." if any(row["launches_choosing"] for row in rows) else ""
    amounts = [panel.amount(row) for panel in _panels(results) for row in panel.rows]
    measured = (
        " Measured: what a throttle leaves of streams' rates." if any("measured" in each for each in amounts) else ""
    )
    return (
        "What the lead and its antagonists lose against running alone, in per cent, with 95 % t intervals between "
        f"launches ({units(row['launches'] for row in rows)}), the least loss first. Pale: what is given back. Below "
        f"each loss: how much faster or slower they are than with nothing done.{chosen}{measured} "
    )


def alternative(results: Results) -> str:
    panels = _panels(results)
    parts = []
    for panel in panels[:MOST_TOLD]:
        told = [_told(row, panel) for row in panel.rows if not math.isnan(row["loss_pct"])]
        parts.append(f"{panel.title}: {'; '.join(told)}")
    more = f" And {counted(len(panels) - MOST_TOLD, 'more mix')}." if len(panels) > MOST_TOLD else ""
    return f"Loss of the lead and of its antagonists. {'. '.join(parts)}.{more}" if parts else lacking(results)


def _told(row: Row, panel: Panel) -> str:
    what = " ".join(filter(None, [name_of(row), panel.amount(row)]))
    return f"{what}, {number(row['loss_pct'])} % and {number(row['others_loss_pct'])} %"


def _panels(results: Results) -> list[Panel]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in records(results.mitigations):
        groups.setdefault((row["mix"], row["platform"]), []).append(row)
    several = len({platform for _, platform in groups}) > 1
    panels, known = [], partitions_by_name(results.plan)
    for (_, platform), rows in groups.items():
        where = f" ({platform})" if several else ""
        title = f"{plain(rows[0]['lead'])} beside {listed(plain(rows[0]['antagonists']).split('+'))}{where}"
        cache = cache_of(results.plan, rows[0]["machine"])
        panels.append(Panel(title, sorted(rows, key=_order), cache, known, results.tried_rdt))
    return panels


def _order(row: Row) -> tuple[bool, bool, float]:
    """Nothing done first, then by what is left of the loss, at last what has no number."""
    left = row["loss_pct"]
    return row["mitigation"] != NOTHING, math.isnan(left), 0.0 if math.isnan(left) else left


def _figure(panels: list[Panel], results: Results) -> Figure:
    drawn = panels[: fitting([panel.height for panel in panels], around=0.5)]
    sheet = Sheet(results, head=0.06)
    colours = [look[0] for look in other_looks(results, ["lead", "antagonists"]).values()]
    columns = [(WHAT, BARS), (WHAT + BARS + NUMBERS + 0.04, BARS)]
    for panel in drawn:
        sheet.text(0.05, sheet.top + 0.04, panel.title, fontsize=8, fontweight="bold", va="top")
        for (left, _), label in zip(columns, panel.labels, strict=True):
            sheet.text(left, sheet.top + TITLE - 0.03, label, fontsize=7, color=GREY, va="bottom")
        places = sheet.beside(LINE * len(panel.rows), *columns, above=TITLE)
        for axes, name, colour in zip(places, SIDES, colours, strict=True):
            columns_of = [f"{name}_{end}" for end in ("pct", "low", "high")]
            every = [0.0, *(row[column] for own in drawn for row in own.rows for column in columns_of)]
            known = [value for value in every if not math.isnan(value)]
            room = 0.04 * (max(known) - min(known)) or 1.0
            axes.set_xlim(min(known) - (room if min(known) < 0 else 0.0), max(known) + room)
            _side(axes, panel, name, colour)
        _names(places[0], places[1], panel)
        sheet.skip(BETWEEN)
    sheet.skip(0.1)
    rows = [row for panel in drawn for row in panel.rows]
    tried = [row for row in rows if row["mitigation"] != NOTHING and not math.isnan(row["loss_pct"])]
    certain = any(not math.isnan(row["loss_low"]) for row in rows)
    parts = ["dashed: nothing done"]
    parts += ["pale: given back"] if any(row["verdict"] == GAIN for row in tried) else []
    parts += ["lines, and the ranges below each loss: 95 % between launches"] if certain else []
    parts += ["faster, slower: than with nothing done"]
    parts += ["hollow: no proven gain (Holm-adjusted)"] if any(row["verdict"] not in PROVEN for row in tried) else []
    more = len(panels) - len(drawn)
    return sheet.finish("; ".join(parts + ([f"{counted(more, 'more mix')} in the CSV"] if more else [])))


def _side(axes: Axes, panel: Panel, name: str, colour: str) -> None:
    """The bars of the program, or of its antagonists, with the line of nothing done."""
    rows_of(axes, [""] * len(panel.rows), at_zero=0.0)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.locator_params(axis="x", nbins=5)
    before = panel.rows[0][f"{name}_pct"]
    if not math.isnan(before):
        axes.axvline(before, color=INK, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    for place, row in enumerate(panel.rows):
        value, low, high = (row[f"{name}_{end}"] for end in ("pct", "low", "high"))
        if math.isnan(value):
            continue
        is_nothing = row["mitigation"] == NOTHING
        hollow = name == "loss" and not is_nothing and row["verdict"] not in PROVEN
        tint = GREY if is_nothing else colour
        if name == "loss" and row["verdict"] == GAIN and before > value:
            left = max(0.0, value)
            axes.barh(place, before - left, left=left, height=BAR, color=colour, alpha=0.2, linewidth=0, zorder=1)
        style: Any = {"color": "white" if hollow else tint, "edgecolor": tint, "linewidth": 0.8, "zorder": 2}
        (drawn,) = axes.barh(place, value, height=BAR, **style)
        who = "the lead loses" if name == "loss" else "its antagonists lose"
        with_value(drawn, f"{name_of(row)} {panel.amount(row)}: {who} {Quantity(value, low, high, '%')}")
        bar(axes, place, low, high, INK, width=0.9)
        words = "\n".join(filter(None, [f"{number(value)} %", _change(row, name)]))
        axes.annotate(words, (1, place), xytext=(4, 0), fontsize=SMALL, linespacing=1.1, **BESIDE_ROW)


def _change(row: Row, name: str) -> str:
    """Against nothing done: by how much the program, or its antagonists, are faster (+) or slower."""
    sign, key = (1, "gain") if name == "loss" else (-1, "cost")
    value, *ends = (sign * row[f"{key}_{end}"] for end in ("pct", "low", "high"))
    if math.isnan(value):
        return ""
    if math.isnan(ends[0]):
        return f"{number(abs(value))} % {'faster' if value > 0 else 'slower'}"
    low, high = sorted(ends)
    if low > 0:
        return f"{number(low)} to {number(high)} % faster"
    if high < 0:
        return f"{number(-high)} to {number(-low)} % slower"
    return f"{number(low)} to +{number(high)} %"


def _names(left: Axes, right: Axes, panel: Panel) -> None:
    """What was tried, and why it has no number: with the axes that come last, so that nothing covers it."""
    for place, row in enumerate(panel.rows):
        words = "\n".join(filter(None, [name_of(row), squeezed(panel.amount(row), 30, 1)]))
        left.annotate(words, (0, place), xytext=(-72 * WHAT + 4, 0), fontsize=7, linespacing=1.1, **BESIDE_ROW)
        if math.isnan(row["loss_pct"]) and math.isnan(row["others_loss_pct"]):
            words = textwrap.shorten(row["reason"] or "no number", LETTERS, placeholder=" …")
            at = (4 - 72 * (BARS + NUMBERS + 0.04), 0)
            right.annotate(words, (0, place), xytext=at, bbox=ON_WHITE, **GREY_WORDS, **BESIDE_ROW)
