"""The figure `path_waterfall`: from a step of the lead alone to one beside others, along its schedule, exactly."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.dataflow.effects import STEP
from castmates.report.figures import waterfall
from castmates.report.figures.neighbours import user_first
from castmates.report.figures.panels import NOTE, finish, fitting, small_print, stacked
from castmates.report.figures.style import PAGE, badge_room, empty_figure, styled
from castmates.report.results import Results, records
from castmates.report.text.paths import PART_WORDS
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, number, plain, units
from castmates.study.spec import UNMANAGED

BESIDE = 2  # neighbours of a lead: those that cost most
LEFT, RIGHT, LINE, HEAD = 2.1, 0.45, 0.19, 0.42  # inches
Row = waterfall.Row


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = results.path_effects
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), source
        return _figure(source, results), source


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if (results.path_effects["partition"] == UNMANAGED).any():
        return ""
    return (
        f"No program of the study {results.name} left the graph of its step beside others (castmates help "
        f"tracing-graph)."
    )


def caption(results: Results) -> str:
    """What stands below the figure."""
    return (
        "From a step of the lead alone to one beside a neighbour, in ms, along the path of its schedule: operations "
        "that take longer on it, others on it, and what lies between. These add up to the difference. Lines at "
        f"their ends: 95 % t intervals between launches ({units(results.path_effects['launches'])}). "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    parts = []
    for step, own in _panels(results):
        largest = max(own, key=lambda row: abs(row["difference_ms"]))
        parts.append(
            f"{plain(step['member'])} beside {plain(step['mix'].partition('+')[2])}: "
            f"{number(step['difference_ms'], 2)} ms longer, the largest part {PART_WORDS[largest['part']]} with "
            f"{number(largest['difference_ms'], 2)} ms"
        )
    return f"Steps along the path of the schedule: {'; '.join(parts)}."


def _panels(results: Results) -> list[tuple[Row, list[Row]]]:
    """Of each lead the neighbours that cost most: the row of the step, and those of its parts in order."""
    table = results.path_effects
    table = table[table["partition"] == UNMANAGED]
    found = []
    for name in user_first(results, table["member"]):
        rows = table[table["member"] == name]
        steps = rows[rows["part"] == STEP].sort_values("difference_ms", ascending=False)
        found += [
            (step, records(rows[(rows["mix"] == step["mix"]) & (rows["part"] != STEP)]))
            for step in records(steps.head(BESIDE))
        ]
    return found


def _figure(table: pd.DataFrame, results: Results) -> Figure:
    found = _panels(results)
    heights = [LINE * (len(own) + 2) for _, own in found]
    count = fitting([HEAD + height for height in heights], around=1.0)
    key = "grey: whole steps, from their beginning at 0, which is not drawn; red: longer than alone; blue: shorter"
    if (table.groupby("member")["mix"].nunique() > BESIDE).any():
        key += f"; of each program the {BESIDE} neighbours that cost most"
    key += f"; not drawn: {counted(len(found) - count, 'pair')}; the CSV has all" if count < len(found) else ""
    notes = small_print(PAGE, key, results)
    foot = 0.42 + NOTE * len(notes)
    figure, places = stacked(heights[:count], HEAD, LEFT, RIGHT, 0.05 + badge_room(caveat(results), PAGE), foot)
    for axes, (step, own) in zip(places, found[:count], strict=True):
        lines = [
            (PART_WORDS[row["part"]], row["difference_ms"], (row["difference_high"] - row["difference_low"]) / 2)
            for row in own
        ]
        waterfall.panel(axes, step, lines)
        beside = plain(step["mix"].partition("+")[2])
        axes.set_title(f"{plain(step['member'])} beside {beside}, traced", loc="left", pad=4, fontweight="bold")
    places[-1].set_xlabel("ms of a step")
    return finish(figure, notes, results)
