"""The figure `phases`: how long each phase of a lead's step takes, alone and beside others, and what it loses."""

import math
import textwrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.core import once
from castmates.analysis.explanations.phases import (
    REST,
    STEP,
    PhaseTimes,
    largest_loss,
    losses_by_phase,
    unmanaged_against_alone,
)
from castmates.report.figures.antagonists import antagonists, other_looks, user_first
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, dot, ends_of, legend_key
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, rows_of
from castmates.report.figures.style import INK, PAGE, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, counted, plain, units

FIGURE = {"title": "Phases of a step", "part": "why", "place": 240, "needs": "PHASES"}
PANELS = 6  # leads that are drawn
MIXES = 8  # of each: those whose step changes most
LINE, HEAD, LEFT, MIDDLE = 0.34, 0.3, 1.35, 0.12  # inches of a row, above a panel, beside it, beside its middle
NAME = 20  # letters of a line beside the axis
ALONE = "alone"
NAMES = ("study", "cohort", "member", "platform")  # of steps, which millions of them have in common
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the table of losses by phase."""
    source = losses(results)
    return drawing(results, source, lacking, lambda: _figure(_leads(results), results))


@once
def times(results: Results) -> PhaseTimes:
    """What leads spent in their phases."""
    return PhaseTimes(results.launch_parts("steps", categories=NAMES), results.windows)


@once
def losses(results: Results) -> pd.DataFrame:
    """Every phase of every effect of a lead that reports phases."""
    return losses_by_phase(times(results))


def lacking(results: Results) -> str:
    return (
        ""
        if _leads(results)
        else f"No lead of the study {results.name} reported phases of its steps (castmates help phases)."
    )


def caption(results: Results) -> str:
    drawn = _leads(results)
    some = any(any(math.isnan(row["loss_low"]) for row in rows) for rows in drawn.values())
    of = units(row["launches"] for rows in drawn.values() for row in rows)
    mixes = max((len({row["mix"] for row in rows}) for rows in drawn.values()), default=0)
    left_out = f" The {MIXES} mixes of each lead whose step changes most are drawn." if mixes >= MIXES else ""
    within = " Dashed: within launch, where there are fewer than three." if some else ""
    return (
        "Left: how long each phase of a lead's step takes, alone and beside its antagonists. Right: how much longer "
        f"than alone, in per cent of the whole step, with 95 % t intervals between launches ({of}).{within}{left_out} "
    )


def alternative(results: Results) -> str:
    drawn = _leads(results)
    if not drawn:
        return lacking(results)
    parts = []
    for lead, rows in drawn.items():
        for mix in dict.fromkeys(row["mix"] for row in rows):
            own = [row for row in rows if row["mix"] == mix]
            sentence = "no phase is slower"
            if worst := largest_loss(own):
                loss = Quantity(worst["loss_pct"], *ends_of(worst, "loss")[:2], "% of the step").whole
                sentence = f"{worst['phase']} loses most, {loss}"
            parts.append(f"{plain(lead)} beside {plain(own[0]['antagonists'])}: {sentence}")
    more = f"; and {counted(len(parts) - MIXES, 'more mix')}" if len(parts) > MIXES else ""
    return f"Losses by phase of the step: {'; '.join(parts[:MIXES])}{more}."


def _leads(results: Results) -> dict[str, list[Row]]:
    """What is drawn of each lead, on each platform: the parts of its step and the whole, where that changes most."""
    leads: dict[str, list[Row]] = {}
    shown = unmanaged_against_alone(losses(results))
    order, known = user_first(results, shown["lead"]), antagonists(results)
    seats = {name: known.index(plain(name)) if plain(name) in known else len(known) for name in shown["antagonists"]}
    several = shown["platform"].nunique() > 1
    for row in sorted(records(shown), key=lambda row: (order.index(row["lead"]), seats[row["antagonists"]])):
        if row["outermost"] or row["phase"] == STEP:
            name = f"{row['lead']} ({row['platform']})" if several else row["lead"]
            leads.setdefault(name, []).append(row)
    for lead, rows in leads.items():
        steps = sorted((row for row in rows if row["phase"] == STEP), key=lambda row: -abs(row["loss_pct"]))
        kept = {row["mix"] for row in steps[:MIXES]}
        leads[lead] = [row for row in rows if row["mix"] in kept]
    return leads


def _looks(leads: dict[str, list[Row]], results: Results) -> dict[str, Look]:
    """Colour and marker of every part, which is no antagonist; the rest grey."""
    names = dict.fromkeys(row["phase"] for rows in leads.values() for row in rows)
    parts = [name for name in names if name not in (STEP, REST)]
    return other_looks(results, parts) | {REST: ("#c9c9c9", "s")}


def _figure(leads: dict[str, list[Row]], results: Results) -> Figure:
    looks = _looks(leads, results)
    names = [[ALONE, *{row["mix"]: _name(row) for row in rows}.values()] for rows in leads.values()]
    heights = [len(own) * max(LINE, *(0.06 + 0.12 * (name.count("\n") + 1) for name in own)) for own in names]
    count = min(PANELS, fitting([HEAD + height + UNDER for height in heights], around=1.0))
    sheet, half = Sheet(results, head=0.0), (PAGE - LEFT) / 2
    columns = (LEFT, half - MIDDLE), (LEFT + half + MIDDLE, half - MIDDLE - 0.15)
    for (lead, rows), own, height in list(zip(leads.items(), names, heights, strict=True))[:count]:
        left, right = sheet.beside(height, *columns, above=HEAD)
        _panel(left, right, rows, own, looks)
        left.set_title(textwrap.shorten(plain(lead), 40), loc="left", pad=4, fontweight="bold")
        left.set_xlabel("ms of a step")
        right.set_xlabel("longer than alone, % of the step alone")
        sheet.skip(UNDER)
    sheet.legend([legend_key(name, look) for name, look in (looks | {"whole step": (INK, "|")}).items()])
    return sheet.finish(f"{counted(len(leads) - count, 'more lead')} in the CSV" if len(leads) > count else "")


def _name(row: Row) -> str:
    return broken(f"beside {plain(row['antagonists'])}", NAME)


def _panel(left: Axes, right: Axes, rows: list[Row], names: list[str], looks: dict[str, Look]) -> None:
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    of = {(row["mix"], row["phase"]): row for row in rows}
    begins = [0.0] * len(names)
    for name, (colour, _) in looks.items():
        own = [of[mix, name] for mix in mixes if (mix, name) in of]
        alone = [sum(row["baseline_ms"] for row in own) / len(own)] if own else []
        for line, length in zip(
            [0, *(1 + mixes.index(row["mix"]) for row in own)],
            [*alone, *(row["scene_ms"] for row in own)],
            strict=False,
        ):
            shown = max(length, 0.0)  # a rest may come out below nothing where clocks round
            left.barh(
                line, shown, left=begins[line], height=0.62, color=colour, edgecolor="white", linewidth=0.5, zorder=2
            )
            begins[line] += shown
    for line, mix in enumerate(mixes, start=1):
        marks = [(of[mix, name], look) for name, look in looks.items() if name != REST and (mix, name) in of]
        marks += [(of[mix, STEP], (INK, "|"))] if (mix, STEP) in of else []
        for place, (row, look) in enumerate(marks):
            at, (low, high, within) = line - 0.32 + 0.64 * (place + 0.5) / len(marks), ends_of(row, "loss")
            bar(right, at, low, high, look[0], width=1.1, line=WITHIN_LAUNCH if within else "-")
            loss = Quantity(row["loss_pct"], low, high, "%")
            words = f"{row['phase']} beside {plain(row['antagonists'])}: {loss} of the step"
            dot(right, row["loss_pct"], at, look, words, size=5.5 if look[1] == "|" else 3.2)
    rows_of(left, names)
    left.spines["left"].set_visible(True)
    left.set_xlim(left=0)
    rows_of(right, [""] * len(names), at_zero=0)
    right.spines["left"].set_visible(True)
