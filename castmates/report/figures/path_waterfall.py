"""The figure `path_waterfall`: from a step of the lead alone to one beside others, along its schedule, exactly."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.dataflow.effects import STEP
from castmates.report.figures import waterfall
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.sheet import drawing
from castmates.report.results import Results, records
from castmates.report.text.paths import PART_WORDS
from castmates.report.text.words import number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {
    "title": "Where a step gets longer along its schedule's path",
    "part": "operations",
    "place": 130,
    "needs": "PROFILE",
}
LEFT = 2.1  # inches
Row = waterfall.Row


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    table = results.path_effects
    return drawing(results, table, lacking, lambda: waterfall.sheet(table, _lines(results), LEFT, results))


def lacking(results: Results) -> str:
    if (results.path_effects["partition"] == UNMANAGED).any():
        return ""
    return (
        f"No lead of the study {results.name} left the graph of its step beside others (castmates help tracing-graph)."
    )


def caption(results: Results) -> str:
    return (
        "From a step of the lead alone to one beside an antagonist, in ms, along the path of its schedule: operations "
        "that take longer on it, others on it, and what lies between. These add up to the difference. Lines at "
        f"their ends: 95 % t intervals between launches ({units(results.path_effects['launches'])}). "
    )


def alternative(results: Results) -> str:
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
    """Of each lead the antagonists that cost most: the row of the step, and those of its parts in order."""
    table = results.path_effects
    table = table[table["partition"] == UNMANAGED]
    found = []
    for name in user_first(results, table["member"]):
        rows = table[table["member"] == name]
        steps = rows[rows["part"] == STEP].sort_values("difference_ms", ascending=False)
        found += [
            (step, records(rows[(rows["mix"] == step["mix"]) & (rows["part"] != STEP)]))
            for step in records(steps.head(waterfall.BESIDE))
        ]
    return found


def _lines(results: Results) -> list[tuple[Row, waterfall.Lines]]:
    return [(step, [_line(row) for row in own]) for step, own in _panels(results)]


def _line(row: Row) -> tuple[str, float, float]:
    return PART_WORDS[row["part"]], row["difference_ms"], (row["difference_high"] - row["difference_low"]) / 2
