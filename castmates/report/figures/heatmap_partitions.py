"""The figure `heatmap_partitions`: the matrix lead × antagonist against alone, a panel for each partition."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import NO_DATA
from castmates.report.figures.heatmap import SHOWN
from castmates.report.figures.heatmap_grid import Panel, cells_of, grid, keys_of, matrices, panelled
from castmates.report.figures.interpolated import in_caption, is_interpolated, read_aloud, with_interpolated
from castmates.report.figures.sheet import drawing, evenly, fitting
from castmates.report.results import Results, records
from castmates.report.text.words import between, counted, number, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Each partition", "part": "recommendation", "place": 160, "needs": "PARTITIONS"}
PANELS = 12


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = _source(results)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    rows, names = _panels(source, chosen(source)[0])
    cells = replace(grid(rows, names, means=False), crowded=_layout(source)[0])
    own = {name: cells_of(rows[rows["panel"] == name]) for name in names}
    panels = [Panel(title, own[name]) for name, title in zip(names, cells.titles, strict=True)]
    return matrices(cells, panels, "; ".join(keys_of(cells, rows, results)), results)


def lacking(results: Results) -> str:
    return "" if chosen(_source(results))[0] else f"No mix of the study {results.name} was measured under a partition."


def caption(results: Results) -> str:
    source = _source(results)
    drawn, left_out = chosen(source)
    more = f" {counted(left_out, 'more partition')} in the figure's CSV." if left_out else ""
    rows, names = _panels(source, drawn)
    of = units(rows["launches"])
    intervals = (
        f"95 % t intervals {between(results.lead_effects('alone', under_partitions=True))} ({of})"
        if rows["loss_low"].notna().any()
        else f"too few launches for intervals between them ({of})"
    )
    return (
        "What each lead (columns) loses beside each antagonist (rows), in per cent of its rate alone, without a "
        f"partition and under each: {counted(len(names), 'panel')}, one scale of colours, {intervals}.{more} "
        + in_caption(rows, "Hatched, with ≈")
    )


def alternative(results: Results) -> str:
    source = _source(results)
    rows, names = _panels(source, chosen(source)[0])
    parts = []
    for name in names:
        known = records(rows[(rows["panel"] == name) & (rows["verdict"] != NO_DATA)])
        losses = [row["loss_pct"] for row in known if not is_interpolated(row)]
        parts += [f"{name} from {number(min(losses))} to {number(max(losses))} %"] if losses else []
    text = f"Losses against running alone, by partition: {'; '.join(parts)}." if parts else lacking(results)
    return text + read_aloud(rows)


def chosen(source: pd.DataFrame) -> tuple[list[str], int]:
    """The partitions that are drawn, evenly spaced in the order of the study, and how many are not."""
    names = [UNMANAGED] * bool((source["partition"] == UNMANAGED).any())
    under = [name for name in dict.fromkeys(source["partition"]) if name != UNMANAGED]
    room = _layout(source)[1] - len(names) if under else 0
    return ([*names, *evenly(under, room)] if under else []), max(0, len(under) - room)


def _layout(source: pd.DataFrame) -> tuple[bool, int]:
    """Whether cells must be small, and how many partitions then fit on a page."""
    names = list(dict.fromkeys(source["partition"]))[:PANELS]
    usual = grid(source.assign(panel=source["partition"]), names, means=False)
    for cells in (usual, replace(usual, crowded=True)):
        lines = fitting([cells.panel[1] + cells.head] * len(names), around=1.0)
        if lines * cells.abreast >= len(names):
            return cells.close, PANELS
    return True, max(2, lines * cells.abreast)


def _source(results: Results) -> pd.DataFrame:
    rows = with_interpolated(results.lead_effects("alone", under_partitions=True), results)
    return rows.loc[rows["antagonists"] != "", [*SHOWN, *(name for name in ("source",) if name in rows)]]


def _panels(source: pd.DataFrame, drawn: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of these partitions, and the names of their panels in order."""
    rows = panelled(source[source["partition"].isin(drawn)], "partition")
    return rows, [
        name for partition in drawn for name in dict.fromkeys(rows.loc[rows["partition"] == partition, "panel"])
    ]
