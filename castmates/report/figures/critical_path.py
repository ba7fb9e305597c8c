"""The figure `critical_path`: what a step consists of along the path of its schedule, alone above, beside others below.

The parts of a bar add up to the step. The marks are bounds that are computed from the same times, and not measured.
"""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from castmates.analysis.dataflow.join import FETCH
from castmates.analysis.operations.per_trace import lead_alone
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.marks import dot, legend_key, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, lines_across, without_axis
from castmates.report.figures.style import INK, SMALL, squeezed
from castmates.report.results import Results, records
from castmates.report.text.words import counted, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "A step along its schedule's path", "part": "operations", "place": 120, "needs": "PROFILE"}
BESIDE = 5  # antagonists of a lead
LEFT, RIGHT, LINE, HEAD = 1.6, 0.55, 0.27, 0.36  # inches
# Name, its words, its colour; from the step's begin to its end, but what computes and waits takes turns.
PARTS = (
    ("before", "before the first", "#d9d9d9"),
    ("batch", "waits for the batch", "#e69f00"),
    ("forward", "forward", "#0072b2"),
    ("backward", "backward", "#56b4e9"),
    ("optimizer", "optimizer", "#009e73"),
    ("other", "other operations", "#7a4fb5"),
    ("idle", "between operations", "#f3c9b0"),
    ("after", "after the last", "#a6a6a6"),
)
BOUNDS = (
    ("graph_path_ms", "path of the graph (computed)", "D"),
    ("per_thread_ms", "bound by its threads (computed)", "|"),
)
Row = dict[str, float]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.critical_path, lacking, lambda: _figure(results))


def lacking(results: Results) -> str:
    if len(_shown(results)):
        return ""
    return f"No lead of the study {results.name} left the graph of its step (castmates help tracing-graph)."


def caption(results: Results) -> str:
    return (
        "What a step consists of along the path of its schedule, in ms: operations that the next one needed or whose "
        "thread it got, and what lies between them. Marks: what operations would take at least, computed from the "
        f"same times. Traced steps ({units(_shown(results)['launches'])}). "
    )


def alternative(results: Results) -> str:
    parts = [
        f"{plain(row['member'])} {_scene(row)}: {number(row['compute_ms'], 2)} of {number(row['step_ms'], 2)} ms in "
        f"operations, {number(row['idle_ms'], 2)} ms between them"
        for row in records(_shown(results))
    ]
    return f"Steps along the path of the schedule: {'; '.join(parts)}."


def _shown(results: Results) -> pd.DataFrame:
    table = results.critical_path
    return table[(table["partition"] == UNMANAGED) & (table["reason"] == "") & table["kind"].isin(["alone", "corun"])]


def _scene(row: dict[str, str]) -> str:
    return "alone" if row["kind"] == "alone" else f"beside {plain(row['mix'].partition('+')[2])}"


def _panels(results: Results) -> list[tuple[str, list[tuple[str, Row]]]]:
    """Of each lead its scenes with their parts: alone first, then those whose steps are longest."""
    table = _shown(results)
    found = []
    for member in user_first(results, table["member"]):
        own = table[table["member"] == member]
        beside = own[~lead_alone(own)].sort_values("step_ms", ascending=False).head(BESIDE)
        rows = [(_scene(row), _parts(results, row)) for row in records(pd.concat([own[lead_alone(own)], beside]))]
        found.append((member, rows))
    return found


def _parts(results: Results, row: dict[str, float]) -> Row:
    """A scene's row with what computes divided by direction."""
    operations = results.path_operations
    own = operations[(operations["scene"] == row["scene"]) & (operations["member"] == row["member"])]
    own = own[(own["partition"] == row["partition"]) & (own["type"] != FETCH)]
    sums = own.groupby("direction")["path_ms"].sum()
    by = {name: float(sums.get(name, 0.0)) for name in ("forward", "backward", "optimizer")}
    named = {name: row[f"{name}_ms"] for name in ("before", "batch", "idle", "after")}
    return {**row, **named, **by, "other": max(0.0, row["compute_ms"] - sum(by.values())) + row["other_ms"]}


def _figure(results: Results) -> Figure:
    found = _panels(results)
    heights = [LINE * len(rows) for _, rows in found]
    count = fitting([HEAD + height for height in heights], around=1.4)
    sheet = Sheet(results)
    for axes, (member, rows) in zip(sheet.stacked(heights[:count], HEAD, LEFT, RIGHT), found, strict=False):
        _panel(axes, rows)
        axes.set_title(f"{plain(member)}, traced", loc="left", pad=4, fontweight="bold")
    axes.set_xlabel("ms of a step")
    sheet.skip(UNDER)
    marks: list[Artist] = [Patch(facecolor=colour, label=words) for _, words, colour in PARTS]
    marks += [legend_key(words, (INK, marker), size=5) for _, words, marker in BOUNDS]
    sheet.legend(marks, 4, handlelength=0.9)
    more = f"; not drawn: {counted(len(found) - count, 'lead')}; the CSV has all" if len(found) > count else ""
    key = "bars add up to the step, whose length stands behind them; times of operations are those of traced steps"
    return sheet.finish(key + more)


def _panel(axes: Axes, rows: list[tuple[str, Row]]) -> None:
    for y, (scene, row) in enumerate(rows):
        at = 0.0
        for name, words, colour in PARTS:
            part = Rectangle((at, y + 0.17), row[name], 0.66, facecolor=colour, linewidth=0, zorder=3)
            axes.add_patch(with_value(part, f"{scene}, {words}: {number(row[name], 3)} ms"))
            at += row[name]
        for column, words, marker in BOUNDS:
            dot(axes, row[column], y + 0.5, (INK, marker), f"{scene}, {words}: {number(row[column], 3)} ms", zorder=5)
        length = number(row["step_ms"], 2)
        axes.text(1.01, y + 0.5, length, transform=axes.get_yaxis_transform(), va="center", fontsize=SMALL)
    axes.set_xlim(0, 1.02 * max(row["step_ms"] for _, row in rows))
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [squeezed(scene, 26, 1) for scene, _ in rows], fontsize=SMALL)
    without_axis(axes)
    lines_across(axes, "x")
