"""The figure `mitigations`: what the program and its antagonists lose under each thing that can be done for a mix."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import GAIN, LOSS
from castmates.analysis.partitions.mitigations import NOTHING
from castmates.report.figures.antagonists import other_looks
from castmates.report.figures.panels import (
    SmallPrint,
    axes_at,
    drawing,
    finish,
    fitting,
    lines_across,
    small_print,
    without_axis,
)
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, badge_room, squeezed
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.mitigations import Row, amount_of, name_of
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, listed, number, plain, units
from castmates.study.cache import Cache
from castmates.study.class_caches import cache_of
from castmates.study.partitions.planned import partitions_by_name
from castmates.study.spec import Partition

FIGURE = {"title": "What helps, and what it costs", "part": "losses", "place": 10, "needs": "MITIGATIONS"}
LINE, TITLE, BETWEEN = 0.3, 0.42, 0.16  # inches: a row, what stands above the rows of a mix, between two mixes
WHAT, BARS, NUMBERS = 1.68, 1.38, 1.24  # inches for the names, for the bars of one side, for the numbers beside them
HEAD, FOOT = 0.06, 0.42
BAR = 0.56  # of a row
LETTERS = 84  # of a reason
MOST_TOLD = 4  # mixes in the alternative text
PROVEN = (GAIN, LOSS)
SIDES = ("loss", "others_loss")


@dataclass(frozen=True)
class Panel:
    """One mix on one platform: what was tried, the best first, then what could not be."""

    title: str
    rows: list[Row]
    cache: Cache | None  # of the machine
    partitions: Mapping[str, Partition]

    @property
    def labels(self) -> tuple[str, str]:
        """What the bars at either side are."""
        several = "+" in self.rows[0]["antagonists"]
        antagonists = "its antagonists lose, on average (%)" if several else "its antagonist loses (%)"
        return f"{squeezed(plain(self.rows[0]['lead']), 20, 1)} loses (%)", antagonists

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return TITLE + LINE * len(self.rows)

    def amount(self, row: Row) -> str:
        """How much of it was tried."""
        return amount_of(row, self.partitions.get(row["partition"]), self.cache)

    @property
    def nothing(self) -> Row:
        """The row of nothing done."""
        return self.rows[0]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.mitigations, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    known = results.mitigations["loss_pct"].notna().any()
    return "" if known else f"Nothing that was tried against a loss is known in the study {results.name}."


def caption(results: Results) -> str:
    """What stands below the figure."""
    rows = [row for panel in _panels(results) for row in panel.rows]
    chosen = " The best mask was chosen on other launches." * any(row["launches_choosing"] for row in rows)
    return (
        "What the lead and its antagonists lose against running alone, in per cent, with 95 % t intervals between "
        f"launches ({units(row['launches'] for row in rows)}), the least loss first. Pale: what is given back. Below "
        f"each loss: how much faster or slower they are than with nothing done.{chosen} "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
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
        panels.append(Panel(title, sorted(rows, key=_order), cache_of(results.plan, rows[0]["machine"]), known))
    return panels


def _order(row: Row) -> tuple[bool, bool, float]:
    """Nothing done first, then by what is left of the loss, at last what has no number."""
    left = row["loss_pct"]
    return row["mitigation"] != NOTHING, math.isnan(left), 0.0 if math.isnan(left) else left


def _figure(panels: list[Panel], results: Results) -> Figure:
    drawn = panels[: fitting([panel.height + BETWEEN for panel in panels], around=HEAD + FOOT)]
    notes = _key(drawn, len(panels) - len(drawn), results)
    head, foot = HEAD + badge_room(caveat(results), PAGE), FOOT + 0.115 * len(notes)
    height = head + sum(panel.height for panel in drawn) + BETWEEN * (len(drawn) - 1) + foot
    figure = Figure(figsize=(PAGE, height))
    colours = [look[0] for look in other_looks(results, ["lead", "antagonists"]).values()]
    ends = [_reach(drawn, name) for name in SIDES]
    top = height - head
    for panel in drawn:
        tall = LINE * len(panel.rows)
        bottom = top - TITLE - tall
        figure.text(0.05 / PAGE, (top - 0.04) / height, panel.title, fontsize=8, fontweight="bold", va="top")
        for side, (name, label) in enumerate(zip(SIDES, panel.labels, strict=True)):
            left = WHAT + side * (BARS + NUMBERS + 0.04)
            axes = axes_at(figure, left, bottom, BARS, tall)
            _side(axes, panel, name, colours[side], ends[side])
            figure.text(left / PAGE, (bottom + tall + 0.03) / height, label, fontsize=7, color=GREY, va="bottom")
            if side == 0:
                _names(axes, panel)
        top = bottom - BETWEEN
    return finish(figure, notes, results)


def _reach(panels: Sequence[Panel], name: str) -> tuple[float, float]:
    columns = (f"{name}_pct", f"{name}_low", f"{name}_high")
    values = [row[column] for panel in panels for row in panel.rows for column in columns]
    known = [0.0, *(value for value in values if not math.isnan(value))]
    room = 0.04 * (max(known) - min(known)) or 1.0
    return min(known) - (room if min(known) < 0 else 0.0), max(known) + room


def _side(axes: Axes, panel: Panel, name: str, colour: str, ends: tuple[float, float]) -> None:
    """The bars of the program, or of its antagonists, with the line of nothing done."""
    axes.set_xlim(*ends)
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    axes.set_yticks([])
    without_axis(axes)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.locator_params(axis="x", nbins=5)
    lines_across(axes, "x")
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    if not math.isnan(before := panel.nothing[f"{name}_pct"]):
        axes.axvline(before, color=INK, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    for place, row in enumerate(panel.rows):
        if math.isnan(row[f"{name}_pct"]):
            if name != "loss" and math.isnan(
                row["loss_pct"]
            ):  # drawn with the axes that come last, so that nothing covers it
                words = textwrap.shorten(row["reason"] or "no number", LETTERS, placeholder=" …")
                axes.annotate(
                    words, (0, place), xycoords=("axes fraction", "data"), xytext=(4 - 72 * (BARS + NUMBERS + 0.04), 0),
                    textcoords="offset points", fontsize=SMALL, color=GREY, va="center", annotation_clip=False,
                    fontstyle="italic", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5}, zorder=5,
                )  # fmt: skip
            continue
        _bar(axes, panel, row, name, place, colour)


def _bar(axes: Axes, panel: Panel, row: Row, name: str, place: int, colour: str) -> None:
    value, low, high = (row[f"{name}_{end}"] for end in ("pct", "low", "high"))
    is_nothing = row["mitigation"] == NOTHING
    hollow = name == "loss" and not is_nothing and row["verdict"] not in PROVEN
    tint = GREY if is_nothing else colour
    if name == "loss" and row["verdict"] == GAIN and (before := panel.nothing[f"{name}_pct"]) > value:
        left = max(0.0, value)
        axes.barh(place, before - left, left=left, height=BAR, color=colour, alpha=0.2, linewidth=0, zorder=1)
    (bar,) = axes.barh(
        place, value, height=BAR, color="white" if hollow else tint, edgecolor=tint, linewidth=0.8, zorder=2
    )
    ends = "" if math.isnan(low) else f" {interval(low, high)}"
    who = "the lead loses" if name == "loss" else "its antagonists lose"
    with_value(bar, f"{name_of(row)} {panel.amount(row)}: {who} {number(value)} %{ends}")
    if ends:
        axes.plot([low, high], [place, place], color=INK, linewidth=0.9, zorder=3)
    change = _change(row, name)
    axes.annotate(
        f"{number(value)} %" + (f"\n{change}" if change else ""), (1, place), xycoords=("axes fraction", "data"),
        xytext=(4, 0), textcoords="offset points", fontsize=SMALL, va="center", annotation_clip=False, linespacing=1.1,
    )  # fmt: skip


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


def _names(axes: Axes, panel: Panel) -> None:
    for place, row in enumerate(panel.rows):
        amount = squeezed(panel.amount(row), 30, 1)
        axes.annotate(
            name_of(row) + (f"\n{amount}" if amount else ""), (0, place), xycoords=("axes fraction", "data"),
            xytext=(-72 * WHAT + 4, 0), textcoords="offset points", fontsize=7, va="center", annotation_clip=False,
            linespacing=1.1,
        )  # fmt: skip


def _key(panels: Iterable[Panel], left_out: int, results: Results) -> SmallPrint:
    rows = [row for panel in panels for row in panel.rows]
    tried = [row for row in rows if row["mitigation"] != NOTHING and not math.isnan(row["loss_pct"])]
    parts = ["dashed: nothing done"]
    certain = any(not math.isnan(row["loss_low"]) for row in rows)
    parts += ["pale: given back"] if any(row["verdict"] == GAIN for row in tried) else []
    parts += ["lines, and the ranges below each loss: 95 % between launches"] if certain else []
    parts += ["faster, slower: than with nothing done"]
    parts += ["hollow: no proven gain (Holm-adjusted)"] if any(row["verdict"] not in PROVEN for row in tried) else []
    parts += [f"{counted(left_out, 'more mix')} in the CSV"] if left_out else []
    return small_print(PAGE, "; ".join(parts), results)
