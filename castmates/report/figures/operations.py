"""The figure `operations`: what each operation has of a step alone, and what it loses beside each antagonist.

From traced steps, which enter no rate: it shows where a loss lies, and how large that is comes from the rounds.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from castmates.analysis.effects.verdicts import LOSS, NO_DATA, TOO_FEW, UNCLEAR
from castmates.analysis.operations.effects import STEP
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.heatmap_cells import SURE, cell, colour_bar, key, round_limit
from castmates.report.figures.panels import NOTE, axes_at, drawing, finish, fitting, small_print
from castmates.report.figures.style import INK, PAGE, SMALL, badge_room, squeezed
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Which operations lose", "part": "operations", "place": 100, "needs": "PROFILE"}
LINES = 16  # operations of a lead that are drawn
BESIDE = 6  # antagonists
LEFT, BAR, GAP = 2.75, 1.0, 0.12  # inches: names, bars, and between these and the cells
LINE, WIDEST, HEAD = 0.27, 0.75, 0.62  # inches of a line, of a cell at most, above a panel
LETTERS = 46
BLUE = "#7fa8c9"
# What has no colour: the scale is that of proven losses, and noise beyond it would be as dark as the largest of them.
GREY = (UNCLEAR, TOO_FEW)
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    table = results.operation_effects
    return drawing(results, table, lacking, lambda: _figure(table, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if (results.operation_effects["partition"] == UNMANAGED).any():
        return ""
    return f"No lead of the study {results.name} was traced alone and beside others (castmates help operations)."


def caption(results: Results) -> str:
    """What stands below the figure."""
    return (
        "What each operation takes of a step of the lead alone (bars), and how much longer its part of the step gets "
        "beside each antagonist, as a loss in per cent (cells). Traced steps, 95 % t intervals between launches "
        f"({units(results.operation_effects['launches'])}); bold: proven, adjusted over all operations. "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    table = results.operation_effects
    lost = table[(table["group"] != STEP) & (table["verdict"] == LOSS) & (table["partition"] == UNMANAGED)]
    lost = lost.sort_values("share_of_loss", ascending=False).head(5)
    parts = [
        f"{operation_words(row['group'])} of {plain(row['member'])} beside {plain(row['mix'].partition('+')[2])}: "
        f"{number(row['loss_pct'])} %"
        for row in records(lost)
    ]
    return f"Operations that are proven to lose: {'; '.join(parts)}." if parts else "No operation is proven to lose."


def panels(table: pd.DataFrame, results: Results) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each lead, unmanaged, in the study's order."""
    shown = table[table["partition"] == UNMANAGED]
    names = user_first(results, shown["member"])
    return [(name, shown[shown["member"] == name]) for name in names]


def _figure(table: pd.DataFrame, results: Results) -> Figure:
    drawn = [(plain(name), *_lines(rows)) for name, rows in panels(table, results)]
    count = fitting([HEAD + LINE * len(lines) for _, lines, _ in drawn], around=1.3)
    more = len(drawn) - count
    drawn = drawn[:count]
    proven = table[table["verdict"].isin(SURE)]["loss_pct"].abs()
    limit = round_limit(float(proven.max()) if len(proven) else math.nan)
    coloured = not set(table["verdict"]) <= {*GREY, NO_DATA}
    words = _key(set(table["verdict"]), results.margin)
    if _too_many(table, "group", LINES + 1):
        words += f"; smaller operations than {LINES} of a lead are in the CSV"
    words += f"; not drawn: antagonists beyond {BESIDE}" if _too_many(table, "mix", BESIDE) else ""
    words += f"; not drawn: {counted(more, 'lead')}; the CSV has all" if more else ""
    notes = small_print(PAGE, f"bars: share of the step alone; {words}", results)
    foot = (0.72 if coloured else 0.2) + NOTE * len(notes)
    top = 0.05 + badge_room(caveat(results), PAGE)
    height = top + sum(HEAD + LINE * len(lines) for _, lines, _ in drawn) + foot
    figure, y = Figure(figsize=(PAGE, height)), height - top
    for name, lines, beside in drawn:
        y -= HEAD + LINE * len(lines)
        bars = axes_at(figure, LEFT, y, BAR, LINE * len(lines))
        _bars(bars, name, lines)
        wide = min(WIDEST, (PAGE - LEFT - BAR - GAP - 0.1) / len(beside))
        _cells(axes_at(figure, LEFT + BAR + GAP, y, wide * len(beside), LINE * len(lines)), lines, beside, limit)
    if coloured:
        colour_bar(axes_at(figure, PAGE * 0.2, foot - 0.36, PAGE * 0.6, 0.09), limit)
    return finish(figure, notes, results)


def _too_many(table: pd.DataFrame, column: str, most: int) -> bool:
    return bool((table.groupby("member")[column].nunique() > most).any())


def _lines(rows: pd.DataFrame) -> tuple[list[tuple[str, float, dict[str, Row]]], list[str]]:
    """The lines of a lead: operation, share of the step, and its row beside each antagonist; the whole step last."""
    beside = list(dict.fromkeys(rows["mix"]))
    steps = rows[rows["group"] == STEP].set_index("mix")["loss_pct"]
    beside = sorted(beside, key=lambda mix: -steps.get(mix, math.nan))[:BESIDE]
    table: dict[str, dict[str, Row]] = {}
    for row in records(rows):
        table.setdefault(row["group"], {})[row["mix"]] = row | {
            "lead": row["member"], "antagonists": row["mix"].partition("+")[2], "launches": row["launches"],
            "within_low": math.nan, "within_high": math.nan,  # there are intervals between launches alone
        }  # fmt: skip
    share = rows.groupby("group")["share"].mean()
    groups = sorted((name for name in table if name != STEP), key=lambda name: -share[name])[:LINES]
    return [(name, float(share[name]), table[name]) for name in [*groups, STEP]], beside


def _bars(axes: Axes, title: str, lines: list[tuple[str, float, dict[str, Row]]]) -> None:
    names = [squeezed(_name(group), LETTERS, 1) for group, _, _ in lines]
    largest = max(share for group, share, _ in lines if group != STEP)
    for y, (group, share, _) in enumerate(lines):
        if group == STEP:
            axes.axhline(y, color="#d0d0d0", linewidth=0.6)
            continue
        bar = Rectangle((0, y + 0.2), share, 0.6, facecolor=BLUE, linewidth=0)
        axes.add_patch(with_value(bar, f"{_name(group)}: {number(100 * share)} % of the step alone"))
        axes.text(share + 0.02 * largest, y + 0.5, f"{number(100 * share)} %", va="center", fontsize=SMALL, color=INK)
    axes.set_xlim(0, 1.45 * largest)
    axes.set_ylim(len(lines), 0)
    axes.set_yticks([y + 0.5 for y in range(len(lines))], names, fontsize=SMALL)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.text(
        -LEFT / BAR + 0.05, 1 + 0.4 / (LINE * len(lines)), f"{title}, traced", transform=axes.transAxes, fontsize=8,
        fontweight="bold", ha="left",
    )  # fmt: skip
    axes.text(0, 1 + 0.06 / (LINE * len(lines)), "share of a step", transform=axes.transAxes, fontsize=SMALL)


def _key(seen: set[str], margin: float | None) -> str:
    """What the marks mean; losses of fewer than three launches have no interval at all here."""
    parts = [
        key(seen - {TOO_FEW}, margin, close=True),
        "grey without ±: fewer than three launches" if TOO_FEW in seen else "",
    ]
    return "; ".join(filter(None, parts))


def _name(group: str) -> str:
    return "the whole step" if group == STEP else operation_words(group)


def _cells(axes: Axes, lines: list[tuple[str, float, dict[str, Row]]], beside: list[str], limit: float) -> None:
    for y, (_, _, by_mix) in enumerate(lines):
        for x, mix in enumerate(beside):
            cell(axes, x, y, by_mix.get(mix), limit, close=True, grey=GREY)
    axes.set_xlim(0, len(beside))
    axes.set_ylim(len(lines), 0)
    axes.xaxis.tick_top()
    names = [squeezed(plain(mix.partition("+")[2]), 14, 2) for mix in beside]
    axes.set_xticks([x + 0.5 for x in range(len(beside))], [f"beside\n{name}" for name in names], fontsize=SMALL)
    axes.set_yticks([])
    axes.tick_params(length=0, pad=1)
    axes.spines[:].set_visible(False)
