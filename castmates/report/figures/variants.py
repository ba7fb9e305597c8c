"""The figure `variants`: what a lead loses beside each antagonist, as it is and in other settings, and its speed."""

import math
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.report.figures.antagonists import looks
from castmates.report.figures.panels import (
    axes_at,
    columns_for,
    drawing,
    finish,
    fitting,
    legend,
    lines_across,
    small_print,
    without_axis,
)
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, Look, badge_room, broken
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.variants import PROVEN, beside, with_ends
from castmates.report.text.words import READ_ALOUD, Row, as_loss, counted, interval, number, units
from castmates.study.spec import UNMANAGED
from castmates.study.variant_keys import BASE

FIGURE = {"title": "Leads in other settings", "part": "losses", "place": 30, "needs": "VARIANTS"}
ROW, TITLE, BETWEEN = 0.2, 0.3, 0.5  # inches: an antagonist of a variant, above a panel, between two panels
NAMES, LOSSES, SPEEDS, APART = 1.5, 3.2, 1.45, 0.35
HEAD, FOOT = 0.34, 0.5
NAME = 22  # letters of a line beside the axis


@dataclass(frozen=True)
class Line:
    """A lead as it is, or a variant, and what it loses beside each antagonist."""

    name: str
    rows: list[Row]  # an antagonist each
    prefix: str = ""  # of its columns: base_ of the lead as it is

    def loss(self, row: Row) -> tuple[float, float, float]:
        """In per cent, with its ends."""
        value, low, high = (as_loss(row[f"{self.prefix}slowdown{end}"]) for end in ("", "_low", "_high"))
        return value, low, high


@dataclass(frozen=True)
class Panel:
    """A lead on one platform, with its variants."""

    title: str
    lines: list[Line]
    antagonists: list[str]

    @property
    def height(self) -> float:
        """Inches of its axes."""
        return len(self.lines) * self.line

    @property
    def line(self) -> float:
        """Inches of one line."""
        return max(0.36, ROW * len(self.antagonists) + 0.1)


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.variant_effects, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    known = results.variant_effects["ratio"].notna().any()
    return "" if known else f"No variant of the study {results.name} was measured beside what its lead was beside."


def caption(results: Results) -> str:
    """What stands below the figure."""
    rows = records(results.variant_effects)
    return (
        "Left: what each lead loses against running alone, in per cent, as it is (base) and in other settings, with "
        f"95 % t intervals between launches ({units(row['launches'] for row in rows)}). Right: how many times as fast "
        "as the base it is alone, with Welch's 95 % interval over the launches of both. "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    told = [
        f"{row['lead']} as {row['variant']} beside {beside(row)} {number(as_loss(row['slowdown']))} %, as it is "
        f"{number(as_loss(row['base_slowdown']))} %, {row['verdict']}"
        for row in _known(results)[:READ_ALOUD]
    ]
    return f"Losses of leads in other settings. {'; '.join(told)}." if told else lacking(results)


def _known(results: Results) -> list[Row]:
    rows = records(results.variant_effects)
    return [row for row in rows if row["partition"] == UNMANAGED and not math.isnan(row["ratio"])]


def _panels(results: Results) -> list[Panel]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in _known(results):
        groups.setdefault((row["lead"], row["platform"]), []).append(row)
    several = len({platform for _, platform in groups}) > 1
    panels = []
    for (lead, platform), rows in groups.items():
        antagonists = list(dict.fromkeys(row["antagonists"] for row in rows))
        base = {row["antagonists"]: row for row in rows}
        variants: dict[str, list[Row]] = {}
        for row in rows:
            variants.setdefault(row["variant"], []).append(row)
        lines = [Line(BASE, list(base.values()), "base_"), *(Line(name, own) for name, own in variants.items())]
        panels.append(Panel(f"{lead} ({platform})" if several else lead, lines, antagonists))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    room = [TITLE + panel.height + BETWEEN for panel in panels]
    drawn = panels[: fitting(room, around=HEAD + FOOT)]
    names = list(dict.fromkeys(name for panel in drawn for name in panel.antagonists))
    known = looks(results, names)
    notes = small_print(PAGE, _key(drawn, len(panels) - len(drawn)), results)
    head, foot = HEAD + badge_room(caveat(results), PAGE), FOOT - BETWEEN + 0.115 * len(notes)
    height = head + sum(room[: len(drawn)]) + foot
    figure = Figure(figsize=(PAGE, height))
    keys = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=f"beside {name.replace('+', ' + ')}")
        for name, (colour, marker) in known.items()
    ]
    legend(figure, keys, 1 - (head - HEAD) / height, columns_for([key.get_label() for key in keys], PAGE))
    top = height - head
    for panel in drawn:
        bottom = top - TITLE - panel.height
        figure.text(0.05 / PAGE, (top - 0.06) / height, panel.title, fontsize=8, fontweight="bold", va="top")
        _losses(axes_at(figure, NAMES, bottom, LOSSES, panel.height), panel, known)
        _speeds(axes_at(figure, NAMES + LOSSES + APART, bottom, SPEEDS, panel.height), panel)
        top = bottom - BETWEEN
    return finish(figure, notes, results)


def _losses(axes: Axes, panel: Panel, known: dict[str, Look]) -> None:
    """A row for each variant, a point for each antagonist."""
    _rows(axes, panel)
    axes.set_yticks(range(len(panel.lines)), [broken(line.name, NAME) for line in panel.lines], fontsize=7)
    axes.set_xlabel("loss (%)", fontsize=7)
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    step = ROW / panel.line
    for place, line in enumerate(panel.lines):
        for row in line.rows:
            colour, marker = known[row["antagonists"]]
            at = place + (panel.antagonists.index(row["antagonists"]) - (len(panel.antagonists) - 1) / 2) * step
            value, low, high = line.loss(row)
            if not math.isnan(low):
                axes.plot([low, high], [at, at], color=colour, linewidth=1.1, zorder=2)
            hollow = not line.prefix and row["verdict"] not in PROVEN
            (point,) = axes.plot(
                [value], [at], marker=marker, markersize=4.5, color=colour, linestyle="", zorder=3,
                markerfacecolor="white" if hollow else colour,
            )  # fmt: skip
            ends = "" if math.isnan(low) else f" {interval(low, high)}"
            verdict = "" if line.prefix else f", {row['verdict']}"
            with_value(point, f"{line.name} beside {beside(row)}: {number(value)} %{ends}{verdict}")
    axes.margins(x=0.08)


def _speeds(axes: Axes, panel: Panel) -> None:
    """How many times as fast as the base each variant is alone."""
    _rows(axes, panel)
    axes.set_yticks([])
    axes.set_xlabel("speed alone (× base)", fontsize=7)
    axes.axvline(1.0, color=GREY, linewidth=0.6, zorder=1)
    ends = [1.0]
    for place, line in enumerate(panel.lines):
        row = line.rows[0]
        if line.prefix or math.isnan(row["speed"]):
            continue
        value, low, high = (row[f"speed{end}"] for end in ("", "_low", "_high"))
        if not math.isnan(low):
            axes.plot([low, high], [place, place], color=INK, linewidth=1.1, zorder=2)
        (point,) = axes.plot([value], [place], marker="o", markersize=4.5, color=INK, linestyle="", zorder=3)
        with_value(point, f"{line.name} alone: {with_ends(row, 'speed')} times as fast as the base")
        axes.annotate(
            number(value, 2), (value, place), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=SMALL
        )
        ends += [value, *(each for each in (low, high) if not math.isnan(each))]
    room = 0.15 * (max(ends) - min(ends)) or 0.1
    axes.set_xlim(min(ends) - room, max(ends) + room)


def _rows(axes: Axes, panel: Panel) -> None:
    axes.set_ylim(len(panel.lines) - 0.5, -0.5)
    without_axis(axes)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.locator_params(axis="x", nbins=5)
    lines_across(axes, "x")


def _key(panels: list[Panel], left_out: int) -> str:
    rows = [row for panel in panels for line in panel.lines if not line.prefix for row in line.rows]
    hollow = any(row["verdict"] not in PROVEN for row in rows)
    parts = ["hollow: not proven to be more or less sensitive than the base (Holm-adjusted)"] if hollow else []
    parts += ["speed counts a step of a variant by the key work of the variant"] * any(row["work"] != 1 for row in rows)
    parts += [f"{counted(left_out, 'more lead')} in the CSV"] if left_out else []
    return "; ".join(parts)
