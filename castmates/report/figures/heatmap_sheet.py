"""Panels of heatmap cells on a sheet, with their names, means, colour bar and small print."""

from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures.heatmap_cells import cell, colour_bar
from castmates.report.figures.heatmap_grid import APART, CONTENTIOUS, GAP, SENSITIVE, Grid, Row, mean_cell
from castmates.report.figures.panels import NOTE, SmallPrint, axes_at, finish
from castmates.report.figures.style import COLUMN, PAGE, badge_room
from castmates.report.results import Results
from castmates.report.text.stamps import caveat


@dataclass(frozen=True)
class Panel:
    """One matrix and what stands around it."""

    title: str
    cells: dict[tuple[str, str], Row]  # (antagonists, lead)
    rows: dict[str, Row] = field(default_factory=dict)  # means of the antagonists
    leads: dict[str, Row] = field(default_factory=dict)  # means of the leads


def width_of(grid: Grid) -> float:
    """Of the sheet, in inches: one column of a paper if that is enough, else the whole page."""
    return COLUMN if grid.left + grid.abreast * (grid.panel[0] + GAP) <= COLUMN else PAGE


def sheet(grid: Grid, panels: list[Panel], notes: SmallPrint, results: Results) -> Figure:
    """Draw the panels, as many abreast as fit."""
    width, height = grid.panel
    lines = -(-len(panels) // grid.abreast)
    total_width = width_of(grid)
    foot = 0.62 + NOTE * len(notes)
    top_room = badge_room(caveat(results), total_width)
    total_height = top_room + lines * (height + grid.head) + foot + 0.05
    figure = Figure(figsize=(total_width, total_height))

    def below(x: float, top: float, wide: float, high: float) -> Axes:
        return axes_at(figure, x, total_height - top - high, wide, high)

    # Few cells are centred in the column instead of being blown up.
    shift = max(0.0, (total_width - grid.left - grid.abreast * (width + GAP)) / 2)
    for place, panel in enumerate(panels):
        line, column = divmod(place, grid.abreast)
        x = shift + grid.left + column * (width + GAP)
        axes = below(x, top_room + grid.head + line * (height + grid.head), width, height)
        _panel(axes, grid, panel, names=column == 0)
    colour_bar(below(total_width * 0.2, total_height - foot + 0.16, total_width * 0.6, 0.09), grid.limit)
    return finish(figure, notes, results)


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
