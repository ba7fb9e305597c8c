"""The figure `phases`: how long each phase of a lead's step takes, alone and beside others, and what it loses."""

import math
import textwrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.analysis.explanations.phases import (
    REST,
    STEP,
    PhaseTimes,
    largest_loss,
    losses_by_phase,
    unmanaged_against_alone,
)
from castmates.report.figures.antagonists import antagonists, other_looks, user_first
from castmates.report.figures.panels import NOTE, axes_at, drawing, finish, fitting, legend, lines_across, small_print
from castmates.report.figures.style import GREY, INK, PAGE, Look, badge_room, broken
from castmates.report.figures.values import with_value
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, number, plain, units

FIGURE = {"title": "Phases of a step", "part": "why", "place": 240, "needs": "PHASES"}
PANELS = 6  # leads that are drawn
MIXES = 8  # of each: those whose step changes most
LINE, HEAD, UNDER, LEFT = 0.34, 0.3, 0.42, 1.35  # inches of a row, above a panel, below it, and beside it
NAME = 20  # letters of a line beside the axis
PALE_REST = "#c9c9c9"
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
    """Why there is nothing to show."""
    return (
        ""
        if _leads(results)
        else f"No lead of the study {results.name} reported phases of its steps (castmates help phases)."
    )


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
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
    """What is read aloud in the figure's place."""
    drawn = _leads(results)
    if not drawn:
        return lacking(results)
    parts = []
    for lead, rows in drawn.items():
        for mix in dict.fromkeys(row["mix"] for row in rows):
            own = [row for row in rows if row["mix"] == mix]
            worst = largest_loss(own)
            sentence = "no phase is slower" if worst is None else (
                f"{worst['phase']} loses most, {number(worst['loss_pct'])} % of the step "
                f"{interval(*_interval(worst)[:2])}"
            )  # fmt: skip
            parts.append(f"{plain(lead)} beside {plain(own[0]['antagonists'])}: {sentence}")
    more = f"; and {counted(len(parts) - MIXES, 'more mix')}" if len(parts) > MIXES else ""
    return f"Losses by phase of the step: {'; '.join(parts[:MIXES])}{more}."


def _leads(results: Results) -> dict[str, list[Row]]:
    """What is drawn of each lead, on each platform that there is: its parts of the step and the whole."""
    leads: dict[str, list[Row]] = {}
    shown = unmanaged_against_alone(losses(results))
    order, known = user_first(results, shown["lead"]), antagonists(results)
    seats = {name: known.index(plain(name)) if plain(name) in known else len(known) for name in shown["antagonists"]}
    several = shown["platform"].nunique() > 1
    for row in sorted(records(shown), key=lambda row: (order.index(row["lead"]), seats[row["antagonists"]])):
        if row["outermost"] or row["phase"] == STEP:
            name = f"{row['lead']} ({row['platform']})" if several else row["lead"]
            leads.setdefault(name, []).append(row)
    return {lead: _most_changed(rows) for lead, rows in leads.items()}


def _most_changed(rows: list[Row]) -> list[Row]:
    """The rows of the mixes whose step changes most, in their order."""
    steps = sorted((row for row in rows if row["phase"] == STEP), key=lambda row: -abs(row["loss_pct"]))
    kept = {row["mix"] for row in steps[:MIXES]}
    return [row for row in rows if row["mix"] in kept]


def _interval(row: Row) -> tuple[float, float, bool]:
    """The interval to draw, and whether it is the one within launch."""
    if math.isnan(row["loss_low"]):
        return row["within_low"], row["within_high"], True
    return row["loss_low"], row["loss_high"], False


def _looks(leads: dict[str, list[Row]], results: Results) -> dict[str, Look]:
    """Colour and marker of every part, which is no antagonist; the rest grey."""
    names = dict.fromkeys(row["phase"] for rows in leads.values() for row in rows)
    parts = [name for name in names if name not in (STEP, REST)]
    return other_looks(results, parts) | {REST: (PALE_REST, "s")}


def _figure(leads: dict[str, list[Row]], results: Results) -> Figure:
    looks = _looks(leads, results)
    known = len(leads)
    heights = [_height(rows) for rows in leads.values()]
    count = min(PANELS, fitting([HEAD + height + UNDER for height in heights], around=1.0))
    leads = dict(list(leads.items())[:count])
    more = f"{counted(known - count, 'more lead')} in the CSV" if known > count else ""
    notes = small_print(PAGE, more, results)
    foot = 0.3 + NOTE * len(notes) + 0.16 * math.ceil((len(looks) + 1) / 6)
    top = badge_room(caveat(results), PAGE)
    height = top + sum(HEAD + own + UNDER for own in heights[: len(leads)]) + foot
    figure = Figure(figsize=(PAGE, height))
    y = height - top
    middle = LEFT + (PAGE - LEFT) * 0.5
    for (lead, rows), own in zip(leads.items(), heights, strict=False):
        y -= HEAD + own
        left = axes_at(figure, LEFT, y, middle - LEFT - 0.12, own)
        right = axes_at(figure, middle + 0.12, y, PAGE - middle - 0.27, own)
        _panel(left, right, lead, rows, looks)
        y -= UNDER
    legend(figure, _keys(looks), (foot - 0.05) / height, columns=6)
    return finish(figure, notes, results)


def _height(rows: list[Row]) -> float:
    """Inches of a panel: its lines, each high enough for the longest name."""
    names = {row["mix"]: _name(row) for row in rows}
    return (1 + len(names)) * max(LINE, *(0.06 + 0.12 * (name.count("\n") + 1) for name in names.values()))


def _name(row: Row) -> str:
    return broken(f"beside {plain(row['antagonists'])}", NAME)


def _panel(left: Axes, right: Axes, lead: str, rows: list[Row], looks: dict[str, Look]) -> None:
    mixes = list(dict.fromkeys(row["mix"] for row in rows))
    parts = [name for name in looks if any(row["phase"] == name for row in rows)]
    of = {(row["mix"], row["phase"]): row for row in rows}
    labels = [ALONE]
    alone = {name: _mean([of[mix, name]["baseline_ms"] for mix in mixes if (mix, name) in of]) for name in parts}
    _bar(left, 0, alone, looks)
    for line, mix in enumerate(mixes, start=1):
        own = {name: of[mix, name] for name in parts if (mix, name) in of}
        _bar(left, line, {name: row["scene_ms"] for name, row in own.items()}, looks)
        shown = [row | {"look": looks[name]} for name, row in own.items() if name != REST]
        shown += [of[mix, STEP] | {"look": (INK, "|")}] if (mix, STEP) in of else []
        for place, row in enumerate(shown):
            _point(right, line - 0.32 + 0.64 * (place + 0.5) / len(shown), row)
        labels.append(_name(next(iter(own.values()))))
    for axes in (left, right):
        axes.set_ylim(len(mixes) + 0.5, -0.5)
        lines_across(axes, "x")
        axes.set_yticks(range(len(labels)), labels if axes is left else [])
        axes.tick_params(axis="y", length=0)
    left.set_xlim(left=0)
    right.axvline(0, color=GREY, linewidth=0.6, zorder=1)
    left.set_title(textwrap.shorten(plain(lead), 40), loc="left", pad=4, fontweight="bold")
    left.set_xlabel("ms of a step")
    right.set_xlabel("longer than alone, % of the step alone")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _bar(axes: Axes, line: int, parts: dict[str, float], looks: dict[str, Look]) -> None:
    begin = 0.0
    for name, length in parts.items():
        shown = max(length, 0.0)  # a rest may come out below nothing where clocks round
        axes.barh(
            line, shown, left=begin, height=0.62, color=looks[name][0], edgecolor="white", linewidth=0.5, zorder=2
        )
        begin += shown


def _point(axes: Axes, at: float, row: Row) -> None:
    colour, marker = row["look"]
    low, high, within = _interval(row)
    if not (math.isnan(low) or math.isnan(high)):
        style = (0, (2, 1.5)) if within else "-"
        axes.plot([low, high], [at, at], color=colour, linewidth=1.1, linestyle=style, zorder=3)
    size = 5.5 if marker == "|" else 3.2
    (point,) = axes.plot([row["loss_pct"]], [at], linestyle="", color=colour, marker=marker, markersize=size, zorder=4)
    ends = "" if math.isnan(low) else f" {interval(low, high)}"
    with_value(
        point, f"{row['phase']} beside {plain(row['antagonists'])}: {number(row['loss_pct'])} %{ends} of the step"
    )


def _keys(looks: dict[str, Look]) -> list[Line2D]:
    def key(name: str, colour: str, marker: str) -> Line2D:
        return Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4.5, label=name)

    return [*(key(name, *look) for name, look in looks.items()), key("whole step", INK, "|")]
