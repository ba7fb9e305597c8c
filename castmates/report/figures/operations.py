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
from castmates.report.figures.heatmap_grid import SURE, cell, colour_bar, key, round_limit
from castmates.report.figures.marks import with_value
from castmates.report.figures.sheet import Sheet, drawing, fitting
from castmates.report.figures.style import INK, PAGE, SMALL, squeezed
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import counted, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Which operations lose", "part": "operations", "place": 100, "needs": "PROFILE"}
LINES = 16  # operations of a lead that are drawn
BESIDE = 6  # antagonists
LEFT, BAR, GAP = 2.75, 1.0, 0.12  # inches: names, bars, and between these and the cells
LINE, WIDEST, HEAD, UNDER = 0.27, 0.75, 0.57, 0.05  # inches of a line, of a cell at most, above a panel, below it
LETTERS = 46
BLUE = "#7fa8c9"
# What has no colour: the scale is that of proven losses, and noise beyond it would be as dark as the largest of them.
GREY = (UNCLEAR, TOO_FEW)
Row = dict[str, Any]
Lines = list[tuple[str, float, dict[str, Row]]]  # an operation, its share of the step, its row beside each antagonist


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    table = results.operation_effects
    return drawing(results, table, lacking, lambda: _figure(table, results))


def lacking(results: Results) -> str:
    if (results.operation_effects["partition"] == UNMANAGED).any():
        return ""
    return f"No lead of the study {results.name} was traced alone and beside others (castmates help operations)."


def caption(results: Results) -> str:
    return (
        "What each operation takes of a step of the lead alone (bars), and how much longer its part of the step gets "
        "beside each antagonist, as a loss in per cent (cells). Traced steps, 95 % t intervals between launches "
        f"({units(results.operation_effects['launches'])}); bold: proven, adjusted over all operations. "
    )


def alternative(results: Results) -> str:
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
    count = fitting([HEAD + UNDER + LINE * len(lines) for _, lines, _ in drawn], around=1.3)
    proven = table[table["verdict"].isin(SURE)]["loss_pct"].abs()
    limit = round_limit(float(proven.max()) if len(proven) else math.nan)
    sheet = Sheet(results)
    for name, lines, beside in drawn[:count]:
        wide = min(WIDEST, (PAGE - LEFT - BAR - GAP - 0.1) / len(beside)) * len(beside)
        sheet.text(0.05, sheet.top + HEAD - 0.4, f"{name}, traced", fontsize=8, fontweight="bold", va="bottom")
        sheet.text(LEFT, sheet.top + HEAD - 0.06, "share of a step", fontsize=SMALL, va="bottom")
        bars, cells = sheet.beside(LINE * len(lines), (LEFT, BAR), (LEFT + BAR + GAP, wide), above=HEAD)
        _panel(bars, cells, lines, beside, limit)
        sheet.skip(UNDER)
    seen = set(table["verdict"])
    if not seen <= {*GREY, NO_DATA}:
        colour_bar(sheet, limit)
    most = table.groupby("member")[["group", "mix"]].nunique()
    words = ["bars: share of the step alone", key(seen - {TOO_FEW}, results.margin, close=True)]
    # Losses of fewer than three launches have no interval at all here.
    words += ["grey without ±: fewer than three launches"] if TOO_FEW in seen else []
    words += [f"smaller operations than {LINES} of a lead are in the CSV"] if (most["group"] > LINES + 1).any() else []
    words += [f"not drawn: antagonists beyond {BESIDE}"] if (most["mix"] > BESIDE).any() else []
    words += [f"not drawn: {counted(len(drawn) - count, 'lead')}; the CSV has all"] if len(drawn) > count else []
    return sheet.finish("; ".join(filter(None, words)))


def _panel(bars: Axes, cells: Axes, lines: Lines, beside: list[str], limit: float) -> None:
    """What each operation takes of a step alone, and what it loses beside each antagonist."""
    largest = max(share for group, share, _ in lines if group != STEP)
    for y, (group, share, by_mix) in enumerate(lines):
        for x, mix in enumerate(beside):
            cell(cells, x, y, by_mix.get(mix), limit, close=True, grey=GREY)
        if group == STEP:
            bars.axhline(y, color="#d0d0d0", linewidth=0.6)
            continue
        part = f"{number(100 * share)} %"
        rectangle = Rectangle((0, y + 0.2), share, 0.6, facecolor=BLUE, linewidth=0)
        bars.add_patch(with_value(rectangle, f"{_name(group)}: {part} of the step alone"))
        bars.text(share + 0.02 * largest, y + 0.5, part, va="center", fontsize=SMALL, color=INK)
    for axes in (bars, cells):
        axes.set_ylim(len(lines), 0)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    bars.set_xlim(0, 1.45 * largest)
    names = [squeezed(_name(group), LETTERS, 1) for group, _, _ in lines]
    bars.set_yticks([y + 0.5 for y in range(len(lines))], names, fontsize=SMALL)
    bars.set_xticks([])
    cells.set_xlim(0, len(beside))
    cells.xaxis.tick_top()
    names = [f"beside\n{squeezed(plain(mix.partition('+')[2]), 14, 2)}" for mix in beside]
    cells.set_xticks([x + 0.5 for x in range(len(beside))], names, fontsize=SMALL)
    cells.tick_params(pad=1)
    cells.set_yticks([])


def _lines(rows: pd.DataFrame) -> tuple[Lines, list[str]]:
    """The lines of a lead: operation, share of the step, and its row beside each antagonist; the whole step last."""
    steps = rows[rows["group"] == STEP].set_index("mix")["loss_pct"]
    beside = sorted(dict.fromkeys(rows["mix"]), key=lambda mix: -steps.get(mix, math.nan))[:BESIDE]
    table: dict[str, dict[str, Row]] = {}
    for row in records(rows):
        table.setdefault(row["group"], {})[row["mix"]] = row | {
            "lead": row["member"], "antagonists": row["mix"].partition("+")[2],
            "within_low": math.nan, "within_high": math.nan,  # there are intervals between launches alone
        }  # fmt: skip
    share = rows.groupby("group")["share"].mean()
    groups = sorted((name for name in table if name != STEP), key=lambda name: -share[name])[:LINES]
    return [(name, float(share[name]), table[name]) for name in [*groups, STEP]], beside


def _name(group: str) -> str:
    return "the whole step" if group == STEP else operation_words(group)
