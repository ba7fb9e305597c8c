"""The figure `predicted_losses`: the whole grid of a study, measured cells plain and predicted ones hatched."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import NO_DATA
from castmates.analysis.prediction.table import CHECK, GRID
from castmates.report.figures.heatmap_grid import KEYS, PREDICTED, Panel, cells_of, grid, matrices, panelled
from castmates.report.figures.sheet import drawing
from castmates.report.results import Results, records
from castmates.report.text.prediction import loss_of, pair_of, source_of
from castmates.report.text.words import READ_ALOUD, between, counted, units

FIGURE = {"title": "The whole grid, measured and predicted", "part": "prediction", "place": 80, "needs": "PREDICTION"}
SHOWN = "measured"


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = _cells(results)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    rows = panelled(_as_effects(source), "title")
    cells = grid(rows, list(dict.fromkeys(rows["panel"])), means=False)
    panels = [Panel(name, cells_of(rows[rows["panel"] == name])) for name in cells.panels]
    parts = ["\N{PLUS-MINUS SIGN} half of the 95 % interval"]
    parts += [KEYS[verdict] for verdict in (PREDICTED, NO_DATA) if (rows["verdict"] == verdict).any()]
    left_out = sum(cells.left_out)
    parts += [f"{counted(left_out, 'row or column')} more in the CSV"] if left_out else []
    return matrices(cells, panels, "; ".join(parts), results)


def lacking(results: Results) -> str:
    if _cells(results)["loss_pct"].notna().any():
        return ""
    return f"No loss of the grid of the study {results.name} was measured, so none can be predicted."


def caption(results: Results) -> str:
    measured = _cells(results).query("source == @SHOWN")
    return (
        "What each lead (columns) loses beside each antagonist (rows), in per cent of its rate alone. Measured, "
        f"95 % t intervals {between(results.effects)} ({units(measured['launches'])}), as the lead of a mix or as the "
        "antagonist in one; hatched: predicted from the measured ones, with 95 % intervals of a further measurement. "
    )


def alternative(results: Results) -> str:
    rows = records(_cells(results))
    parts = [f"{pair_of(row)} {loss_of(row)}, {source_of(row)}" for row in rows[:READ_ALOUD]]
    more = f"; and {len(rows) - READ_ALOUD} more in the table of predictions" if len(rows) > READ_ALOUD else ""
    return f"Losses of the whole grid: {'; '.join(parts)}{more}."


def _cells(results: Results) -> pd.DataFrame:
    table = results.predictions
    return table[table["part"].isin([GRID, CHECK])]


def _as_effects(cells: pd.DataFrame) -> pd.DataFrame:
    """As the cells of every heatmap are."""
    verdicts = cells["source"].map({"measured": SHOWN, "predicted": PREDICTED}).fillna(NO_DATA)
    return cells.assign(verdict=verdicts, title="measured and predicted")
