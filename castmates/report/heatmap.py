"""The figure `heatmap`: what each lead loses beside each of its antagonists, against solo and against placebo."""

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castmates.report.read import Results, records
from castmates.report.stamps import caveat
from castmates.report.style import (
    COLUMN,
    GREY,
    INK,
    PAGE,
    PALE,
    SHADES,
    SMALL,
    SMALL_LETTER,
    badge,
    badge_room,
    broken,
    empty_figure,
    plain,
    stamp,
    styled,
)
from castmates.report.words import interval, number, percent_of, within
from castmates.study.spec import UNMANAGED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINES = ("solo", "placebo")
CELL_WIDTH, LONE_WIDTH, CELL_HEIGHT, GAP, LINE = 0.68, 1.1, 0.37, 0.16, 0.125  # inches; a lone column holds its title
LETTER = 0.062  # a letter of 7 points
SHOWN = ["study", "mix", "lead", "antagonists", "partition", "baseline", "degradation_pct", "degradation_low"]
SHOWN += ["degradation_high", "within_low", "within_high", "blocks", "p_holm", "verdict", "platform", "possibly_biased"]


@dataclass(frozen=True)
class Grid:
    """What stands in which row and column; all lengths in inches."""

    rows: list[str]  # antagonists
    row_labels: list[str]
    leads: list[str]
    lead_labels: list[str]
    baselines: list[str]
    limit: float  # of the colours, in per cent

    @property
    def left(self) -> float:
        """Room for the names of the antagonists."""
        return 0.12 + LETTER * max(len(line) for label in self.row_labels for line in label.split("\n"))

    @property
    def head(self) -> float:
        """Room above a panel for its title and the names of the leads."""
        return 0.3 + LINE * max(label.count("\n") + 1 for label in self.lead_labels)

    @property
    def panel(self) -> tuple[float, float]:
        """Width and height of one panel's cells."""
        lines = max(label.count("\n") + 1 for label in self.row_labels)
        across = CELL_WIDTH if len(self.leads) > 1 else LONE_WIDTH
        return across * len(self.leads), max(CELL_HEIGHT, LINE * lines + 0.05) * len(self.rows)

    @property
    def stacked(self) -> bool:
        """Whether the panels stand below each other, being too wide for a page side by side."""
        return self.left + (self.panel[0] + GAP) * len(self.baselines) > PAGE


def draw(results: Results) -> "tuple[Figure, pd.DataFrame]":
    """The figure and its source data."""
    effects = results.effects
    plainly = (effects["role"] == "lead") & (effects["partition"] == UNMANAGED)
    source = effects[plainly & effects["baseline"].isin(BASELINES)][SHOWN]
    with styled():
        if source.empty:
            return empty_figure(why_empty(results), caveat(results)), source
        return _figure(_grid(source), source, results), source


def why_empty(results: Results) -> str:
    """Why there is nothing to see."""
    if len(results.lead_effects("solo", under_partitions=True)):
        return f"The study {results.name} has no mix without a partition."
    return f"No effect could be computed in the study {results.name}."


def _grid(source: "pd.DataFrame") -> Grid:
    rows = list(dict.fromkeys(source["antagonists"]))
    leads = list(dict.fromkeys(source["lead"]))
    largest = source["degradation_pct"].abs().max()
    return Grid(
        rows=rows,
        row_labels=[broken(plain(name), 24) for name in rows],
        leads=leads,
        lead_labels=[broken(plain(lead), 11) for lead in leads],
        baselines=[name for name in BASELINES if (source["baseline"] == name).any()],
        limit=_round_limit(0.0 if math.isnan(largest) else float(largest)),
    )


def _round_limit(largest: float) -> float:
    """The next round number, at least 5 %, so that noise does not get strong colours."""
    return next(
        (step for step in (5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0) if step >= largest), 10 * math.ceil(largest / 10)
    )


def _figure(grid: Grid, source: "pd.DataFrame", results: Results) -> "Figure":
    from matplotlib.figure import Figure

    width, height = grid.panel
    across, down = (1, len(grid.baselines)) if grid.stacked else (len(grid.baselines), 1)
    total_width = max(COLUMN, grid.left + across * (width + GAP))
    notes = _notes(grid, source, results, int((total_width - 0.2) / SMALL_LETTER))
    foot = 0.62 + 0.115 * len(notes)
    top_room = badge_room(caveat(results), total_width)
    total_height = top_room + down * (height + grid.head) + foot + 0.05
    figure = Figure(figsize=(total_width, total_height))

    def axes_at(x: float, top: float, wide: float, high: float) -> "Axes":
        return figure.add_axes(
            (x / total_width, 1 - (top + high) / total_height, wide / total_width, high / total_height)
        )

    # Few cells are centred in the column instead of being blown up.
    shift = (total_width - grid.left - across * (width + GAP)) / 2
    for place, baseline in enumerate(grid.baselines):
        column, line = (0, place) if grid.stacked else (place, 0)
        x = shift + grid.left + column * (width + GAP)
        axes = axes_at(x, top_room + grid.head + line * (height + grid.head), width, height)
        _panel(axes, grid, source[source["baseline"] == baseline], baseline, names=column == 0)
    _colour_bar(axes_at(total_width * 0.2, total_height - foot + 0.16, total_width * 0.6, 0.09), grid.limit)
    figure.text(0.1 / total_width, 0.06 / total_height, "\n".join(notes), fontsize=SMALL, color=GREY, va="bottom")
    badge(figure, caveat(results))
    return figure


def _panel(axes: "Axes", grid: Grid, source: "pd.DataFrame", baseline: str, names: bool) -> None:
    cells = {(row["antagonists"], row["lead"]): row for row in records(source)}
    axes.set_xlim(0, len(grid.leads))
    axes.set_ylim(len(grid.rows), 0)
    for y, antagonists in enumerate(grid.rows):
        for x, lead in enumerate(grid.leads):
            _cell(axes, x, y, cells.get((antagonists, lead)), grid.limit)
    axes.xaxis.tick_top()
    axes.set_xticks([x + 0.5 for x in range(len(grid.leads))], grid.lead_labels)
    axes.set_yticks([y + 0.5 for y in range(len(grid.rows))], grid.row_labels if names else [""] * len(grid.rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"against {baseline}", fontweight="bold", pad=5)


def _cell(axes: "Axes", x: int, y: int, row: dict[str, Any] | None, limit: float) -> None:
    from matplotlib.patches import Rectangle

    verdict = row["verdict"] if row else "no data"
    if row is None or verdict == "no data" or math.isnan(row["degradation_pct"]):
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="#a8a8a8", hatch="////", linewidth=0))
        _frame(axes, x, y, "white", dashed=False)
        if row is not None:
            axes.text(
                x + 0.5, y + 0.5, "no data", ha="center", va="center", fontsize=6.5, color=INK, backgroundcolor="w"
            )
        return
    fill, ink = (PALE, "#555555") if verdict == "unclear" else _colours(row["degradation_pct"], limit)
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=fill, linewidth=0))
    _frame(axes, x, y, "white", dashed=False)
    if verdict == "too few blocks":
        _frame(axes, x, y, ink, dashed=True)
    first, second = _cell_words(row)
    first += " †" if row["possibly_biased"] else ""
    weight = "bold" if verdict in ("slower", "faster") else "normal"
    axes.text(x + 0.5, y + 0.32, first, ha="center", va="center", fontsize=8, color=ink, fontweight=weight)
    axes.text(x + 0.5, y + 0.72, second, ha="center", va="center", fontsize=SMALL, color=ink)


def _frame(axes: "Axes", x: int, y: int, colour: str, dashed: bool) -> None:
    from matplotlib.patches import Rectangle

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


def _cell_words(row: dict[str, Any]) -> tuple[str, str]:
    value = number(row["degradation_pct"])
    half = f"± {number((row['degradation_high'] - row['degradation_low']) / 2)}"
    return {
        "slower": (f"▼ {value}", half),
        "faster": (f"▲ {value}", half),
        "equivalent": ("≈ 0", f"{value} {half}"),
        "too few blocks": (value, interval(*within(row))),
    }.get(row["verdict"], (value, half))


def _colours(value: float, limit: float) -> tuple[str, str]:
    """Fill and ink of a cell."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    red, green, blue, _ = mpl.colormaps[SHADES](0.5 + value / (2 * limit))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5
    return to_hex((red, green, blue)), INK if light else "white"


def _colour_bar(axes: "Axes", limit: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(-limit, limit), SHADES)
    bar = axes.figure.colorbar(
        scale, cax=axes, orientation="horizontal", ticks=[-limit, -limit / 2, 0, limit / 2, limit]
    )
    bar.outline.set_linewidth(0.4)
    bar.ax.set_xticklabels([number(tick, 0 if tick.is_integer() else 1) for tick in bar.get_ticks().tolist()])
    bar.ax.tick_params(length=2, pad=1.5)
    bar.set_label("degradation of the lead (%)", labelpad=1.5)


def _notes(grid: Grid, source: "pd.DataFrame", results: Results, width: int) -> list[str]:
    """The key to the marks that occur, and the stamp."""
    margin = f"±{percent_of(results.margin)}" if results.margin is not None else "the study's margin"
    meaning = {
        "slower": "▼ slower",
        "faster": "▲ faster",
        "equivalent": f"≈ 0: within {margin}",
        "unclear": "grey: unclear",
        "too few blocks": "dashed [ ]: within launch only",
        "no data": "hatched: no data",
    }
    seen = set(source["verdict"])
    if len(source) < len(grid.rows) * len(grid.leads) * len(grid.baselines):
        seen.add("no data")
    if not seen <= {"too few blocks", "no data"}:
        meaning["slower"] = "± half of the 95 % interval between launches; " + meaning["slower"]
    key = "; ".join(text for verdict, text in meaning.items() if verdict in seen)
    key += "; †: possibly biased by rejected windows" if source["possibly_biased"].any() else ""
    return [*textwrap.wrap(key, width), *textwrap.wrap(stamp(results.platforms, results.name), width)]
