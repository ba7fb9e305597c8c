"""The figure `variants`: what a lead loses beside each antagonist, as it is and in other settings, and its speed."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures.antagonists import looks
from castmates.report.figures.marks import bar, dot, legend_key
from castmates.report.figures.sheet import Sheet, drawing, fitting, rows_of
from castmates.report.figures.style import INK, SMALL, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.variants import PROVEN, beside
from castmates.report.text.words import READ_ALOUD, Quantity, Row, as_loss, counted, number, units
from castmates.study.spec import UNMANAGED
from castmates.study.workload_keys import BASE

FIGURE = {"title": "Leads in other settings", "part": "losses", "place": 30, "needs": "VARIANTS"}
ROW, TITLE, BETWEEN = 0.2, 0.3, 0.5  # inches: an antagonist of a variant, above a panel, between two panels
NAMES, LOSSES, SPEEDS, APART = 1.5, 3.2, 1.45, 0.35
NAME = 22  # letters of a line beside the axis


@dataclass(frozen=True)
class Line:
    """A lead as it is, or a variant, and what it loses beside each antagonist."""

    name: str
    rows: list[Row]  # an antagonist each
    prefix: str = ""  # of its columns: base_ of the lead as it is

    def loss(self, row: Row) -> Quantity:
        """In per cent, with its ends."""
        return Quantity.loss(row, f"{self.prefix}slowdown", "%")


Panel = tuple[str, list[Line]]  # the title of a lead on one platform; as it is, then its variants


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.variant_effects, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    known = results.variant_effects["ratio"].notna().any()
    return "" if known else f"No variant of the study {results.name} was measured beside what its lead was beside."


def caption(results: Results) -> str:
    rows = records(results.variant_effects)
    return (
        "Left: what each lead loses against running alone, in per cent, as it is (base) and in other settings, with "
        f"95 % t intervals between launches ({units(row['launches'] for row in rows)}). Right: how many times as fast "
        "as the base it is alone, with Welch's 95 % interval over the launches of both. "
    )


def alternative(results: Results) -> str:
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
        base = {row["antagonists"]: row for row in rows}
        variants: dict[str, list[Row]] = {}
        for row in rows:
            variants.setdefault(row["variant"], []).append(row)
        lines = [Line(BASE, list(base.values()), "base_"), *(Line(name, own) for name, own in variants.items())]
        panels.append((f"{lead} ({platform})" if several else lead, lines))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    high = [max(0.36, ROW * len(lines[0].rows) + 0.1) for _, lines in panels]  # of a line of each
    heights = [each * len(lines) for each, (_, lines) in zip(high, panels, strict=True)]
    drawn = panels[: fitting([TITLE + height + BETWEEN for height in heights], around=0.84)]
    known = looks(results, dict.fromkeys(row["antagonists"] for _, lines in drawn for row in lines[0].rows))
    sheet = Sheet(results)
    sheet.legend([legend_key(f"beside {name.replace('+', ' + ')}", look, size=6) for name, look in known.items()])
    for (title, lines), height, each in zip(drawn, heights, high, strict=False):
        sheet.text(0.05, sheet.top + 0.12, title, fontsize=8, fontweight="bold", va="top")
        columns = (NAMES, LOSSES), (NAMES + LOSSES + APART, SPEEDS)
        losses, speeds = sheet.beside(height, *columns, above=TITLE)
        rows_of(losses, [broken(line.name, NAME) for line in lines], at_zero=0.0, fontsize=7)
        rows_of(speeds, [""] * len(lines), at_zero=1.0)
        _losses(losses, lines, known, ROW / each)
        _speeds(speeds, lines)
        for axes, label in ((losses, "loss (%)"), (speeds, "speed alone (× base)")):
            axes.set_xlabel(label, fontsize=7)
            axes.tick_params(axis="x", labelsize=SMALL)
            axes.locator_params(axis="x", nbins=5)
        sheet.skip(BETWEEN)
    rows = [row for _, lines in drawn for line in lines[1:] for row in line.rows]
    hollow = any(row["verdict"] not in PROVEN for row in rows)
    work = any(row["work"] != 1 for row in rows)
    parts = ["hollow: not proven to be more or less sensitive than the base (Holm-adjusted)"] if hollow else []
    parts += ["speed counts a step of a variant by the key work of the variant"] if work else []
    more = len(panels) - len(drawn)
    return sheet.finish("; ".join(parts + ([f"{counted(more, 'more lead')} in the CSV"] if more else [])))


def _losses(axes: Axes, lines: list[Line], known: dict[str, Look], step: float) -> None:
    """A row for each variant, a point for each antagonist."""
    names = [row["antagonists"] for row in lines[0].rows]
    for place, line in enumerate(lines):
        for row in line.rows:
            at = place + (names.index(row["antagonists"]) - (len(names) - 1) / 2) * step
            look, loss = known[row["antagonists"]], line.loss(row)
            bar(axes, at, loss.low, loss.high, look[0], width=1.1, zorder=2)
            words = f"{line.name} beside {beside(row)}: {loss}"
            words += "" if line.prefix else f", {row['verdict']}"
            hollow = not line.prefix and row["verdict"] not in PROVEN
            dot(axes, loss.value, at, look, words, hollow=hollow, size=4.5, zorder=3)
    axes.margins(x=0.08)


def _speeds(axes: Axes, lines: list[Line]) -> None:
    """How many times as fast as the base each variant is alone."""
    ends = [1.0]
    for place, line in enumerate(lines[1:], start=1):
        value, low, high = (line.rows[0][f"speed{end}"] for end in ("", "_low", "_high"))
        if math.isnan(value):
            continue
        bar(axes, place, low, high, INK, width=1.1, zorder=2)
        words = f"{line.name} alone: {Quantity.of(line.rows[0], 'speed', digits=3)} times as fast as the base"
        dot(axes, value, place, (INK, "o"), words, size=4.5, zorder=3)
        above: Any = {"textcoords": "offset points", "ha": "center", "fontsize": SMALL}
        axes.annotate(number(value, 2), (value, place), xytext=(0, 5), **above)
        ends += [each for each in (value, low, high) if not math.isnan(each)]
    room = 0.15 * (max(ends) - min(ends)) or 0.1
    axes.set_xlim(min(ends) - room, max(ends) + room)
