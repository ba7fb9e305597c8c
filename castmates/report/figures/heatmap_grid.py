"""Matrices of heatmap cells: what stands in which row and column, in which order, and how large it is."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from castmates.analysis.effects.verdicts import GAIN, LOSS, NO_DATA, NO_LOSS, TOO_FEW, UNCLEAR
from castmates.analysis.partitions.sensitivity import INTERPOLATED
from castmates.report.figures.marks import with_value
from castmates.report.figures.sheet import Sheet
from castmates.report.figures.style import COLUMN, INK, NOT_MEASURED_HATCH, PAGE, PALE, SHADES, SMALL, broken
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, between, counted, loss_seen, number, percent_of, plain

CELL_WIDTH, LONE_WIDTH, CELL_HEIGHT, GAP, LINE = 0.68, 1.1, 0.37, 0.16, 0.125  # inches; a lone column holds its title
CLOSE, CLOSE_HEIGHT = 0.285, 0.27  # of cells where there are many
LETTER, TITLE_LETTER = 0.062, 0.08  # a letter of 7 points; a bold one of 8
APART = 0.25  # of a cell: between the matrix and its margins
CLUSTERED = 6  # rows or columns from which on those alike stand side by side
MOST_ROWS, MOST_LEADS = 30, 18  # that are drawn; the CSV has all
LEAST_MEANS = 3  # rows and columns from which on their means are drawn
SENSITIVE, CONTENTIOUS = "sensitivity (mean)", "contentiousness (mean)"
Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """One matrix and what stands around it."""

    title: str
    cells: dict[tuple[str, str], Row]  # (antagonists, lead)
    rows: dict[str, Row] = field(default_factory=dict)  # means of the antagonists
    leads: dict[str, Row] = field(default_factory=dict)  # means of the leads


@dataclass(frozen=True)
class Grid:
    """Names and sizes; all lengths in inches."""

    rows: list[str]  # antagonists
    leads: list[str]
    panels: list[str]  # their names
    limit: float  # of the colours, in per cent
    means: bool  # of the rows beside them, of the columns below them
    clustered: bool
    left_out: tuple[int, int]  # rows and columns that are not drawn
    crowded: bool = False  # panels that do not fit on a page with cells of the usual size

    @property
    def close(self) -> bool:
        """Whether cells have to be small."""
        return self.crowded or 0.12 + LETTER * 24 + CELL_WIDTH * self.across > PAGE

    @property
    def row_labels(self) -> list[str]:
        """The names of the rows, in lines."""
        return [broken(plain(name), 24) for name in self.rows]

    @property
    def lead_labels(self) -> list[str]:
        """The names of the columns, in lines; those of close columns stand upright."""
        return [broken(plain(lead), 22 if self.close else 11) for lead in self.leads]

    @property
    def across(self) -> float:
        """Columns of a panel, that of the means included."""
        return len(self.leads) + (1 + APART) * self.means

    @property
    def down(self) -> float:
        """Rows of a panel, that of the means included."""
        return len(self.rows) + (1 + APART) * self.means

    @property
    def left(self) -> float:
        """Room for the names of the antagonists."""
        extra = [SENSITIVE] * self.means
        return 0.12 + LETTER * max(len(line) for label in [*self.row_labels, *extra] for line in label.split("\n"))

    @property
    def titles(self) -> list[str]:
        """The names of the panels, in lines that their cells are wide enough for."""
        return [broken(name, max(12, int(self.panel[0] / TITLE_LETTER))) for name in self.panels]

    @property
    def head(self) -> float:
        """Room above a panel for its title and the names of the leads."""
        further = LINE * max(title.count("\n") for title in self.titles)
        lines = [line for label in self.lead_labels for line in label.split("\n")]
        if self.close:
            return further + 0.36 + LETTER * max(len(CONTENTIOUS) * self.means, *map(len, lines))
        return further + 0.3 + LINE * max(3 * self.means, *(label.count("\n") + 1 for label in self.lead_labels))

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell."""
        lines = max(label.count("\n") + 1 for label in self.row_labels)
        wide = CLOSE if self.close else CELL_WIDTH if self.across > 1 else LONE_WIDTH
        return wide, max(CLOSE_HEIGHT if self.close else CELL_HEIGHT, LINE * lines + 0.05)

    @property
    def panel(self) -> tuple[float, float]:
        """Width and height of one panel's cells."""
        return self.cell[0] * self.across, self.cell[1] * self.down

    @property
    def abreast(self) -> int:
        """Panels that fit beside each other on a page."""
        return max(1, min(len(self.panels), int((PAGE - self.left) / (self.panel[0] + GAP))))


def grid(source: pd.DataFrame, panels: Sequence[str], means: bool) -> Grid:
    """The matrix of these effects: the heaviest neighbours first; of many those that are alike side by side."""
    rows, leads = (list(dict.fromkeys(source[name])) for name in ("antagonists", "lead"))
    first = source[source["panel"] == panels[0]]
    clustered = max(len(rows), len(leads)) >= CLUSTERED
    rows = _ordered(first, rows, "antagonists", "lead")
    if len(leads) >= CLUSTERED:
        leads = _ordered(first, leads, "lead", "antagonists")
    left_out = max(0, len(rows) - MOST_ROWS), max(0, len(leads) - MOST_LEADS)
    largest = source["loss_pct"].abs().max()
    return Grid(
        rows[:MOST_ROWS], leads[:MOST_LEADS], list(panels), round_limit(float(largest)),
        means and min(len(rows), len(leads)) >= LEAST_MEANS, clustered, left_out,
    )  # fmt: skip


def _ordered(source: pd.DataFrame, names: list[str], side: str, other: str) -> list[str]:
    """By what is lost, most first; from six on those that lose alike side by side, the heavier end first."""
    means = source.groupby(side)["loss_pct"].mean().reindex(names)
    order = list(means.sort_values(ascending=False, kind="stable", na_position="last").index)
    if len(names) < CLUSTERED:
        return order
    order, half = alike(source, order, side, other), len(names) // 2
    return order if means[order[:half]].mean() >= means[order[half:]].mean() else order[::-1]


def panelled(source: pd.DataFrame, by: str) -> pd.DataFrame:
    """The rows with the name of their `panel`: what is in this column, and their platform where there are several.

    What was measured and what was not never stand in one matrix; without a number a row is of no platform then.
    """
    if len({*source["platform"]} - {""}) <= 1:
        return source.assign(panel=source[by])
    known = source[source["platform"] != ""]
    return known.assign(panel=known[by] + ", " + known["platform"])


def alike(source: pd.DataFrame, names: list[str], side: str, other: str) -> list[str]:
    """These rows (or columns) in an order in which neighbours lose alike: average linkage, leaves turned for the best.

    A missing cell counts as the mean of its column, so that it pulls nowhere.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # slow to import, and few studies have so many names

    table = source.pivot_table(index=side, columns=other, values="loss_pct", dropna=False).reindex(names)
    table = table.fillna(table.mean()).fillna(0.0)
    order = leaves_list(linkage(table.to_numpy(), method="average", optimal_ordering=True))
    return [names[place] for place in order]


def cells_of(source: pd.DataFrame) -> dict[tuple[str, str], Row]:
    """The rows of one panel by antagonists and lead."""
    return {(row["antagonists"], row["lead"]): row for row in records(source)}


def mean_cell(row: Row | None) -> Row | None:
    """A margin as a cell; None where it has no value."""
    if row is None or math.isnan(row["loss_pct"]):
        return None
    clear = row["loss_low"] > 0 or row["loss_high"] < 0
    return row | {"verdict": "mean" if clear or math.isnan(row["loss_low"]) else UNCLEAR}


def _panel(axes: Axes, grid: Grid, panel: Panel, names: bool) -> None:
    axes.set_xlim(0, grid.across)
    axes.set_ylim(grid.down, 0)
    close, beside, below = grid.close, len(grid.leads) + APART, len(grid.rows) + APART
    for y, antagonists in enumerate(grid.rows):
        for x, lead in enumerate(grid.leads):
            cell(axes, x, y, panel.cells.get((antagonists, lead)), grid.limit, close)
        if grid.means:
            cell(axes, beside, y, mean_cell(panel.rows.get(antagonists)), grid.limit, close)
    if grid.means:
        for x, lead in enumerate(grid.leads):
            cell(axes, x, below, mean_cell(panel.leads.get(lead)), grid.limit, close)
    _ticks(axes, grid, names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.title, fontweight="bold", pad=5)


def _ticks(axes: Axes, grid: Grid, names: bool) -> None:
    across, down = [*grid.lead_labels], [*grid.row_labels]
    xs, ys = [x + 0.5 for x in range(len(across))], [y + 0.5 for y in range(len(down))]
    if grid.means:
        xs.append(len(across) + APART + 0.5)
        across.append(CONTENTIOUS if grid.close else "contentious-\nness\n(mean)")
        ys.append(len(down) + APART + 0.5)
        down.append(SENSITIVE)
    axes.xaxis.tick_top()
    axes.set_xticks(xs, across, rotation=90 if grid.close else 0, linespacing=0.95 if grid.close else 1.2)
    axes.set_yticks(ys, down if names else [""] * len(down))


def matrices(grid: Grid, panels: Sequence[Panel], key: str, results: Results) -> Figure:
    """Draw the panels, as many abreast as fit, and below them the bar of their colours."""
    width, height = grid.panel
    needed = grid.left + grid.abreast * (width + GAP)
    sheet = Sheet(results, COLUMN if needed <= COLUMN else PAGE, head=0.0)
    first = grid.left + max(0.0, (sheet.width - needed) / 2)  # few cells are centred instead of being blown up
    for begin in range(0, len(panels), grid.abreast):
        row = panels[begin : begin + grid.abreast]
        columns = [(first + column * (width + GAP), width) for column in range(len(row))]
        for axes, panel in zip(sheet.beside(height, *columns, above=grid.head), row, strict=True):
            _panel(axes, grid, panel, names=panel is row[0])
    colour_bar(sheet, grid.limit)
    return sheet.finish(key)


def keys_of(grid: Grid, rows: pd.DataFrame, results: Results) -> list[str]:
    """The marks that occur in the matrices of these rows."""
    seen = set(rows["verdict"])
    if len(rows) < rows["lead"].nunique() * rows["antagonists"].nunique() * len(grid.panels):
        seen.add(NO_DATA)
    effects = results.lead_effects("alone", under_partitions=True)
    parts = [key(seen, results.margin, grid.close, between(effects))]
    parts += ["†: possibly biased by rejected windows"] if rows["possibly_biased"].any() else []
    parts += ["means: geometric, of whole rows and columns, grey where the interval holds 0"] if grid.means else []
    return parts + (["those that lose alike stand side by side"] if grid.clustered else [])


# One cell of a heatmap, its colour, its words, and the bar of colours; the same for every heatmap.

PREDICTED = "predicted"
KEYS = {
    LOSS: "▼ loss",
    GAIN: "▲ gain",
    NO_LOSS: "≈ 0: no loss, within {margin}",
    UNCLEAR: "grey: unclear, not proven after Holm's adjustment",
    TOO_FEW: "dashed [ ]: too few launches, within launch only",
    NO_DATA: "hatched: no data",
    PREDICTED: "colour and hatches: predicted, not measured",
    INTERPOLATED: "colour and hatches, ≈: interpolated, with its bound; not measured",
}
VALUES = {PREDICTED: "predicted, not measured"}  # what a cell says when it is pointed at, instead of its verdict
SURE = (LOSS, GAIN)
GREY_INK = "#555555"
DARK, LIGHT = "#111111", "#fefefe"  # on a colour that is the same on every page, so the page's own ink will not do


def round_limit(largest: float) -> float:
    """The next round number, at least 5 %, so that noise does not get strong colours; 5 % where nothing is known."""
    if math.isnan(largest):
        return 5.0
    return next(
        (step for step in (5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0) if step >= largest), 10 * math.ceil(largest / 10)
    )


def key(seen: Collection[str], margin: float | None, close: bool, level: str = "between launches") -> str:
    """What the marks that occur mean; `level` is what intervals are between."""
    size = f"±{percent_of(margin)}" if margin is not None else "the study's margin"
    keys = KEYS
    if close:
        keys = {**KEYS, LOSS: "bold: loss or gain", GAIN: "bold: loss or gain"}
        keys[NO_LOSS] = "neither bold nor grey: no loss, within {margin}"
    parts = list(dict.fromkeys(text.format(margin=size) for verdict, text in keys.items() if verdict in seen))
    if not set(seen) <= {TOO_FEW, NO_DATA}:
        parts = [f"± half of the 95 % interval {level}", *parts]
    return "; ".join(parts)


def cell(
    axes: Axes,
    x: float,
    y: float,
    row: dict[str, Any] | None,
    limit: float,
    close: bool = False,
    grey: Collection[str] = (UNCLEAR,),
) -> None:
    """Draw one; hatched where there is nothing, and without a colour where the verdict is one of `grey`.

    `close` cells have no room for marks and further decimals.
    """
    verdict = row["verdict"] if row else NO_DATA
    if row is None or verdict == NO_DATA or math.isnan(row["loss_pct"]):
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="#a8a8a8", hatch="////", linewidth=0))
        _frame(axes, x, y, "white", dashed=False)
        if row is not None and not close:
            axes.text(
                x + 0.5, y + 0.5, NO_DATA, ha="center", va="center", fontsize=SMALL, color=INK, backgroundcolor="w"
            )
        return
    fill, ink = (PALE, GREY_INK) if verdict in grey else colours(row["loss_pct"], limit)
    axes.add_patch(with_value(Rectangle((x, y), 1, 1, facecolor=fill, linewidth=0), _value(row)))
    if verdict in (PREDICTED, INTERPOLATED):
        axes.add_patch(
            Rectangle((x, y), 1, 1, fill=False, edgecolor=ink, hatch=NOT_MEASURED_HATCH, alpha=0.6, linewidth=0)
        )
    _frame(axes, x, y, "white", dashed=False)
    if verdict == TOO_FEW and not close:
        _frame(axes, x, y, ink, dashed=True)
    first, second = (_close_words if close else _words)(row)
    first += " †" if row.get("possibly_biased") else ""
    size, weight = (SMALL if close else 8), "bold" if verdict in SURE else "normal"
    texts = [
        axes.text(x + 0.5, y + 0.32, first, ha="center", va="center", fontsize=size, color=ink, fontweight=weight),
        axes.text(x + 0.5, y + 0.72, second, ha="center", va="center", fontsize=SMALL, color=ink),
    ]
    if verdict in (PREDICTED, INTERPOLATED):  # no hatch runs through a number
        for text in texts:
            text.set_path_effects([withStroke(linewidth=2.5, foreground=fill)])


def colours(value: float, limit: float) -> tuple[str, str]:
    """Fill and ink of a cell."""
    red, green, blue, _ = mpl.colormaps[SHADES](0.5 + value / (2 * limit))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5
    return to_hex((red, green, blue)), DARK if light else LIGHT


def colour_bar(sheet: Sheet, limit: float) -> None:
    """The scale, the same for all cells of a figure, no change in its middle."""
    (axes,) = sheet.beside(0.09, (0.2 * sheet.width, 0.6 * sheet.width), above=0.2)
    scale = ScalarMappable(Normalize(-limit, limit), SHADES)
    ticks = [-limit, -limit / 2, 0, limit / 2, limit]
    bar = sheet.figure.colorbar(scale, cax=axes, orientation="horizontal", ticks=ticks)
    bar.outline.set_linewidth(0.4)
    bar.ax.set_xticklabels([number(tick, 0 if float(tick).is_integer() else 1) for tick in ticks])
    bar.ax.tick_params(length=2, pad=1.5)
    bar.set_label("loss (%)", labelpad=1.5)
    sheet.skip(0.3)


def _frame(axes: Axes, x: float, y: float, colour: str, dashed: bool) -> None:
    inset = 0.06 if dashed else 0.0
    axes.add_patch(
        Rectangle(
            (x + inset / 2, y + inset),
            1 - inset,
            1 - 2 * inset,
            fill=False,
            edgecolor=colour,
            linewidth=0.6 if dashed else 1.5,
            linestyle=(0, (3, 2)) if dashed else "-",
        )
    )


def _value(row: dict[str, Any]) -> str:
    """All of a cell in a line: who beside whom, loss, interval, verdict and launches."""
    # Operations have no interval within a launch.
    loss = loss_seen(row, "%") if "within_low" in row else Quantity.of(row, "loss_pct", "%")
    who = f"mean of {plain(row['who'])}" if "who" in row else f"{plain(row['lead'])} beside {plain(row['antagonists'])}"
    parts = [str(loss)]
    parts += [VALUES.get(row["verdict"], row["verdict"])] if row["verdict"] in KEYS else []
    parts += [counted(int(row["launches"]), "launch")] if row["verdict"] != PREDICTED else []
    return f"{who}: {', '.join(parts)}"


def _words(row: dict[str, Any]) -> tuple[str, str]:
    verdict, value = row["verdict"], number(row["loss_pct"])
    if verdict == TOO_FEW:
        return value, loss_seen(row).ends if "within_low" in row else ""
    half = (row["loss_high"] - row["loss_low"]) / 2
    spread = "" if math.isnan(half) else f"± {number(half)}"
    if verdict == INTERPOLATED:
        return f"≈ {value}", Quantity.of(row, "loss_pct").interval
    if verdict == NO_LOSS:
        return "≈ 0", f"{value} {spread}"
    return {LOSS: "▼ ", GAIN: "▲ "}.get(verdict, "") + value, spread


def _close_words(row: dict[str, Any]) -> tuple[str, str]:
    """Two figures at most, so that they fit into a quarter of an inch."""

    def short(value: float) -> str:
        return number(value, 0 if abs(value) >= 9.95 else 1)

    half = (row["loss_high"] - row["loss_low"]) / 2
    return short(row["loss_pct"]), "" if math.isnan(half) else f"±{short(half)}"
