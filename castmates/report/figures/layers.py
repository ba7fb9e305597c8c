"""The figure `layers`: where each lead's steps spend their time, by kind of layer, alone and beside antagonists.

From profiled steps, which enter no rate: it explains, and decides nothing.
"""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.core import once
from castmates.analysis.explanations.layer_times import NAMES, NEEDED, layer_times
from castmates.analysis.explanations.layers import RUNTIME, UNATTRIBUTED
from castmates.report.figures.antagonists import BASELINES, in_order, looks, user_first
from castmates.report.figures.marks import bar, dot, legend_key
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, rows_of
from castmates.report.figures.style import Look
from castmates.report.results import Results, records
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
    source = profiles(results)[0]
    shown = source[source["partition"] == UNMANAGED]
    return drawing(results, source, lacking, lambda: _figure(shown, results))


def lacking(results: Results) -> str:
    if (profiles(results)[0]["partition"] == UNMANAGED).any():
        return ""
    return f"No lead of the study {results.name} was profiled: only jobs that can be are (castmates help layers)."


def caption(results: Results) -> str:
    steps = profiles(results)[1]
    which = f", {', '.join(map(str, steps))} steps of each" if steps else ""
    return (
        "Where a step of each lead spends its time, in ms, by kind of layer, alone and beside antagonists: profiled, "
        f"not measured{which}. TensorFlow's profiler was on, after the measured rounds, which makes steps slower. "
    )


def alternative(results: Results) -> str:
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


def lines_of(rows: pd.DataFrame) -> list[tuple[str, dict[str, Row]]]:
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
        lines.append((f"{REST} ({len(rest)})", _added([table[name] for name in rest])))
    lines += [(name, table[name]) for name in behind]
    return [*lines, (WHOLE, _added(table.values()))]


def _added(parts: Iterable[dict[str, Row]]) -> dict[str, Row]:
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
    every = sorted(panels_of(table), key=lambda one: order.index(one[1]["lead"].iloc[0]))
    panels = [(lead, lines_of(rows)) for lead, rows in every]
    heights = [LINE * len(lines) for _, lines in panels]
    count = fitting([HEAD + height for height in heights], around=1.5)
    sheet = Sheet(results)
    for axes, (lead, lines) in zip(sheet.stacked(heights[:count], HEAD, LEFT, RIGHT), panels, strict=False):
        _panel(axes, lines, by_name)
        axes.set_title(f"{lead}, {TITLE}", loc="left", pad=4, fontweight="bold")
    axes.set_xlabel("ms of a step")
    sheet.skip(UNDER)
    sheet.legend([legend_key(_scene(name), look, hollow=name == ALONE) for name, look in by_name.items()])
    left_out = [counted(len(panels) - count, "lead")] if len(panels) > count else []
    left_out += [f"antagonists but the {BESIDE} of a lead that change its step most"] if len(table) < known else []
    return sheet.finish(
        "means over launches, bars from the lowest to the highest; kinds, runtime and unattributed add up to the step; "
        "what runs at the same moment shares it"
        + (f"; not drawn: {', '.join(left_out)}; the CSV has all" if left_out else "")
    )


def _scene(beside: str) -> str:
    return beside if beside == ALONE else f"beside {beside}"


def _looks(table: pd.DataFrame, results: Results) -> dict[str, Look]:
    """Colour and marker of everything that ran beside a lead, in the study's order; alone is ink."""
    return {ALONE: BASELINES[ALONE]} | looks(results, in_order(results, {*table["beside"]} - {ALONE}))


def _panel(axes: Axes, lines: list[tuple[str, dict[str, Row]]], looks: dict[str, Look]) -> None:
    for place, (name, by_cohort) in enumerate(lines):
        if name in (RUNTIME, WHOLE):
            axes.axhline(place - 0.5, color="#d0d0d0", linewidth=0.5)
        there = [beside for beside in looks if beside in by_cohort]
        for index, beside in enumerate(there):
            row, look = by_cohort[beside], looks[beside]
            y = place + 0.5 * ((index + 0.5) / len(there) - 0.5)
            bar(axes, y, row["lowest"], row["highest"], look[0], width=1.0)
            words = f"{name}, {_scene(beside)}: {number(row['ms_per_step'], 2)} ms"
            dot(axes, row["ms_per_step"], y, look, words, hollow=beside == ALONE)
    rows_of(axes, [name for name, _ in lines])
    widest = max(row["ms_per_step"] for _, by_cohort in lines for row in by_cohort.values())
    axes.set_xlim(-0.012 * widest, 1.03 * widest)
