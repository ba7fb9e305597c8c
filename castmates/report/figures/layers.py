"""The figure `layers`: where each lead's steps spend their time, by kind of layer, alone and beside antagonists.

From profiled steps, which enter no rate: it explains, and decides nothing.
"""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.analysis.explanations.layer_times import NAMES, NEEDED, layer_times
from castmates.analysis.explanations.layers import RUNTIME, UNATTRIBUTED
from castmates.report.figures.antagonists import BASELINES, antagonists, looks, user_first
from castmates.report.figures.panels import (
    NOTE,
    columns_for,
    drawing,
    finish,
    fitting,
    legend,
    lines_across,
    small_print,
    stacked,
    without_axis,
)
from castmates.report.figures.style import PAGE, Look, badge_room
from castmates.report.figures.values import with_value
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, number, plain
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Layers, profiled", "part": "why", "place": 270, "needs": "LAYERS"}
TITLE = "profiled, not measured"
ALONE = "alone"
BESIDE = 6  # co-runs of a lead that are drawn
LINES = 12  # kinds that a panel names; the rest is one line, and the CSV has them all
REST, WHOLE = "all other kinds", "the whole step"
SAID = 4  # kinds that the text alternative names
LEFT, RIGHT = 1.75, 0.15  # inches beside the axes
LINE, HEAD = 0.2, 0.42  # inches of a kind, and above a panel
KEYS = ["study", "member", "lead", "platform", "scene", "mix", "partition", "beside", "kind", "direction"]
SHOWN = [*KEYS, "ms_per_step", "lowest", "highest", "share", "launches", "steps"]
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = profiles(results)[0]
    shown = source[source["partition"] == UNMANAGED]
    return drawing(results, source, lacking, lambda: _figure(shown, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if (profiles(results)[0]["partition"] == UNMANAGED).any():
        return ""
    return f"No lead of the study {results.name} was profiled: only jobs that can be are (castmates help layers)."


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
    steps = profiles(results)[1]
    which = f", {', '.join(map(str, steps))} steps of each" if steps else ""
    return (
        "Where a step of each lead spends its time, in ms, by kind of layer, alone and beside antagonists: profiled, "
        f"not measured{which}. TensorFlow's profiler was on, after the measured rounds, which makes steps slower. "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    source = profiles(results)[0]
    alone = source[(source["partition"] == UNMANAGED) & (source["beside"] == ALONE)]
    if alone.empty:
        return lacking(results)
    parts = []
    for lead, rows in panels_of(alone):
        largest = [
            f"{name} {number(line[ALONE]['ms_per_step'])} ms" for name, line in lines_of(rows)[:SAID] if ALONE in line
        ]
        parts.append(f"{lead}: {', '.join(largest)}")
    return f"Profiled, not measured. Largest kinds of layers in a step alone: {'; '.join(parts)}."


@once
def profiles(results: Results) -> tuple[pd.DataFrame, list[int]]:
    """What a step takes by kind, and how many steps were profiled."""
    return by_kind(results.launch_parts("layers", NEEDED, NAMES))


def by_kind(parts: Iterable[pd.DataFrame]) -> tuple[pd.DataFrame, list[int]]:
    """Milliseconds of a step by kind and direction: the mean over the launches that profiled the scene, its range."""
    times = layer_times(parts)
    if times.table.empty:
        return pd.DataFrame(columns=SHOWN), []
    table = times.table.assign(lead=times.table["member"].map(plain), beside=_beside(times.table))
    order = ["lead", "member", "platform", "scene", "ms_per_step"]
    table = table.sort_values(order, ascending=[True, True, True, True, False])
    return table[SHOWN], times.steps


def _beside(layers: pd.DataFrame) -> "pd.Series[str]":
    """Who ran beside the lead, without the CPUs unless the same names sat on others too."""
    full = layers["mix"].str.partition("+")[2]
    names = full.map(plain)
    seats = full.groupby([layers["member"], layers["platform"], names]).transform("nunique")
    return names.where(seats < 2, full).where(full != "", ALONE)


def panels_of(source: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """What is shown of each lead, on each of its seats and platforms; these are named where there are several."""
    seats = source.groupby("lead")["member"].nunique().to_dict()
    several = source["platform"].nunique() > 1
    panels = []
    for (lead, member, platform), rows in source.groupby(["lead", "member", "platform"], sort=True):
        name = str(member if seats[lead] > 1 else lead)
        panels.append((f"{name} ({platform})" if several else name, rows))
    return panels


def most_changed(source: pd.DataFrame) -> pd.DataFrame:
    """Each lead alone and beside those that change its whole step most: more marks in a line would overlap."""
    lead = ["member", "platform"]
    steps = source.groupby([*lead, "beside"], sort=False)["ms_per_step"].sum().reset_index()
    alone = steps["ms_per_step"].where(steps["beside"] == ALONE).groupby([steps[key] for key in lead]).transform("max")
    steps["change"] = (steps["ms_per_step"] - alone).abs().where(steps["beside"] != ALONE, math.inf)
    kept = steps.sort_values("change", ascending=False, kind="stable").groupby(lead).head(1 + BESIDE)
    return source.merge(kept[[*lead, "beside"]], on=[*lead, "beside"])


def lines_of(rows: pd.DataFrame) -> "list[tuple[str, dict[str, Row]]]":
    """The lines of a lead's panel, each with what it took by cohort: the largest kinds, the rest, and the whole."""
    table: dict[str, dict[str, Row]] = {}
    for row in records(rows):
        name = row["kind"] if row["direction"] in ("", row["kind"]) else f"{row['kind']}, {row['direction']}"
        table.setdefault(name, {})[row["beside"]] = row
    order = sorted(table, key=lambda name: -max(row["ms_per_step"] for row in table[name].values()))
    behind = [name for name in (RUNTIME, UNATTRIBUTED) if name in table]
    kinds = [name for name in order if name not in behind]
    lines = [(name, table[name]) for name in kinds[:LINES]]
    if rest := kinds[LINES:]:
        lines.append((f"{REST} ({len(rest)})", _added(table[name] for name in rest)))
    lines += [(name, table[name]) for name in behind]
    return [*lines, (WHOLE, _added(table.values()))]


def _added(parts: Any) -> dict[str, Row]:  # noqa: ANN401 (an iterable of what lines_of gathers)
    """The sums of several lines; a range cannot be added, so there is none."""
    sums: dict[str, Row] = {}
    for part in parts:
        for beside, row in part.items():
            so_far = sums.setdefault(beside, {"ms_per_step": 0.0, "lowest": math.nan, "highest": math.nan})
            so_far["ms_per_step"] += row["ms_per_step"]
    return sums


def _figure(table: pd.DataFrame, results: Results) -> Figure:
    known, table = len(table), most_changed(table)
    by_name = _looks(table, results)
    order = user_first(results, table["lead"])
    panels = [
        (lead, lines_of(rows))
        for lead, rows in sorted(panels_of(table), key=lambda one: order.index(one[1]["lead"].iloc[0]))
    ]
    count = fitting([HEAD + LINE * len(lines) for _, lines in panels], around=1.5)
    panels, more = panels[:count], len(panels) - count
    left_out = [counted(more, "lead")] if more else []
    left_out += [f"antagonists but the {BESIDE} of a lead that change its step most"] if len(table) < known else []
    key = (
        "means over launches, bars from the lowest to the highest; kinds, runtime and unattributed add up to the step; "
        "what runs at the same moment shares it"
        + (f"; not drawn: {', '.join(left_out)}; the CSV has all" if left_out else "")
    )
    notes = small_print(PAGE, key, results)
    columns = columns_for(by_name, PAGE)
    foot = 0.6 + 0.17 * math.ceil(len(by_name) / columns) + NOTE * len(notes)
    heights = [LINE * len(lines) for _, lines in panels]
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, 0.08 + badge_room(caveat(results), PAGE), foot)
    for axes, (lead, lines) in zip(places, panels, strict=True):
        _panel(axes, lines, by_name)
        axes.set_title(f"{lead}, {TITLE}", loc="left", pad=4, fontweight="bold")
    places[-1].set_xlabel("ms of a step")
    legend(figure, _keys(by_name), (foot - 0.5) / figure.get_figheight(), columns)
    return finish(figure, notes, results)


def _looks(table: pd.DataFrame, results: Results) -> dict[str, Look]:
    """Colour and marker of everything that ran beside a lead, in the study's order; alone is ink."""
    known = {name: place for place, name in enumerate(antagonists(results))}
    names = sorted({str(name) for name in table["beside"]} - {ALONE})
    return {ALONE: BASELINES[ALONE]} | looks(
        results, sorted(names, key=lambda name: known.get(plain(name), len(known)))
    )


def _panel(axes: Axes, lines: "list[tuple[str, dict[str, Row]]]", looks: dict[str, Look]) -> None:
    for place, (name, by_cohort) in enumerate(lines):
        if name in (RUNTIME, WHOLE):
            axes.axhline(place - 0.5, color="#d0d0d0", linewidth=0.5)
        there = [beside for beside in looks if beside in by_cohort]
        for index, beside in enumerate(there):
            row, (colour, marker) = by_cohort[beside], looks[beside]
            y = place + 0.5 * ((index + 0.5) / len(there) - 0.5)
            if not math.isnan(row["lowest"]):
                axes.plot([row["lowest"], row["highest"]], [y, y], color=colour, linewidth=1.0, zorder=3)
            face = "white" if beside == ALONE else colour
            (point,) = axes.plot(
                [row["ms_per_step"]], [y], marker, color=colour, markerfacecolor=face, markersize=4.0, zorder=4
            )
            who = beside if beside == ALONE else f"beside {beside}"
            with_value(point, f"{name}, {who}: {number(row['ms_per_step'], 2)} ms")
    widest = max(row["ms_per_step"] for _, by_cohort in lines for row in by_cohort.values())
    axes.set_xlim(-0.012 * widest, 1.03 * widest)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks(range(len(lines)), [name for name, _ in lines])
    without_axis(axes)
    lines_across(axes, "x")


def _keys(looks: dict[str, Look]) -> list[Line2D]:
    return [
        Line2D(
            [], [], linestyle="", marker=marker, color=colour, markersize=4.5,
            markerfacecolor="white" if name == ALONE else colour, label=name if name == ALONE else f"beside {name}",
        )
        for name, (colour, marker) in looks.items()
    ]  # fmt: skip
