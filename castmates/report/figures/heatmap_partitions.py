"""The figure `heatmap_partitions`: the matrix lead × antagonist against solo, a panel for each partition."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from castmates.report.figures.heatmap import SHOWN
from castmates.report.figures.heatmap_cells import key
from castmates.report.figures.heatmap_grid import Grid, cells_of, grid, panelled
from castmates.report.figures.heatmap_sheet import Panel, sheet, width_of
from castmates.report.figures.panels import fitting, small_print
from castmates.report.figures.style import empty_figure, stamp, styled
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, number, units
from castmates.study.spec import UNMANAGED

PANELS = 12


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = _source(results)
    with styled():
        drawn, left_out = chosen(source)
        if not drawn:
            return empty_figure(_why_empty(results), caveat(results)), source
        rows, names = _panels(source, drawn)
        cells = replace(grid(rows, names, means=False, again=False), crowded=_layout(source)[0])
        panels = [
            Panel(title, cells_of(rows[rows["panel"] == name])) for name, title in zip(names, cells.titles, strict=True)
        ]
        return sheet(cells, panels, _notes(cells, rows, left_out, results), results), source


def caption(results: Results) -> str:
    """What stands below the figure, before what all captions say."""
    source = _source(results)
    drawn, left_out = chosen(source)
    more = f" {counted(left_out, 'more partition')} in the figure's CSV." if left_out else ""
    rows, names = _panels(source, drawn)
    panels, of = counted(len(names), "panel"), units(rows["blocks"])
    if rows["degradation_low"].notna().any():
        intervals = f"Intervals are 95 % t intervals between launches ({of}); grey cells"
    else:
        intervals = f"There are too few launches for intervals between them ({of}); grey cells"
    return (
        f"Degradation of the lead (columns) beside its antagonists (rows) against solo, in per cent, {panels}: "
        "first without a partition, then under each; one scale of colours for all. "
        f"{intervals} are not significant after Holm's adjustment, which is taken over all partitions, "
        f"and those without one by themselves. Hatched: not measured.{more} "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    source = _source(results)
    rows, names = _panels(source, chosen(source)[0])
    parts = []
    for name in names:
        known = [row for row in records(rows[rows["panel"] == name]) if row["verdict"] != "no data"]
        losses = [row["degradation_pct"] for row in known]
        parts += [f"{name} from {number(min(losses))} to {number(max(losses))} %"] if losses else []
    return f"Heatmaps of degradation against solo: {'; '.join(parts)}." if parts else _why_empty(results)


def chosen(source: pd.DataFrame) -> tuple[list[str], int]:
    """The partitions that are drawn, evenly spaced in the order of the study, and how many are not."""
    names = [UNMANAGED] * bool((source["partition"] == UNMANAGED).any())
    under = [name for name in dict.fromkeys(source["partition"]) if name != UNMANAGED]
    room = _layout(source)[1] - len(names) if under else 0
    if len(under) > room:
        picked = [under[round(place * (len(under) - 1) / max(1, room - 1))] for place in range(room)]
        return [*names, *picked], len(under) - room
    return ([*names, *under] if under else []), 0


def _layout(source: pd.DataFrame) -> tuple[bool, int]:
    """Whether cells must be small, and how many partitions then fit on a page."""
    names = list(dict.fromkeys(source["partition"]))[:PANELS]
    usual = grid(source.assign(panel=source["partition"]), names, means=False, again=False)
    for cells in (usual, replace(usual, crowded=True)):
        lines = fitting([cells.panel[1] + cells.head] * len(names), around=1.0)
        if lines * cells.abreast >= len(names):
            return cells.close, PANELS
    return True, max(2, lines * cells.abreast)


def _source(results: Results) -> pd.DataFrame:
    rows = results.lead_effects("solo", under_partitions=True)
    return rows[rows["antagonists"] != ""][SHOWN]


def _panels(source: pd.DataFrame, drawn: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of these partitions, and the names of their panels in order."""
    rows = panelled(source[source["partition"].isin(drawn)], "partition")
    return rows, [
        name for partition in drawn for name in dict.fromkeys(rows.loc[rows["partition"] == partition, "panel"])
    ]


def _why_empty(results: Results) -> str:
    return f"No mix of the study {results.name} was measured under a partition."


def _notes(cells: Grid, rows: pd.DataFrame, left_out: int, results: Results) -> list[str]:
    seen = set(rows["verdict"])
    if len(rows) < rows["lead"].nunique() * rows["antagonists"].nunique() * len(cells.panels):
        seen.add("no data")
    parts = ["against solo", key(seen, results.margin, cells.close)]
    parts += ["†: possibly biased by rejected windows"] if rows["possibly_biased"].any() else []
    parts += ["ordered by clustering"] if cells.clustered else []
    parts += [f"{counted(left_out, 'more partition')} in the CSV"] if left_out else []
    return small_print(width_of(cells), "; ".join(parts), stamp(results.platforms, results.name))
