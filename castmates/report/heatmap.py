"""The figure `heatmap`: what each lead loses beside each of its antagonists, against solo and against placebo."""

import textwrap
from typing import TYPE_CHECKING

from castmates.analysis.margins import BASELINES, CONTENTIOUSNESS, SENSITIVITY
from castmates.report.heatmap_cells import key
from castmates.report.heatmap_grid import Grid, Row, cells_of, grid
from castmates.report.heatmap_sheet import Panel, letters, sheet
from castmates.report.read import Results, records
from castmates.report.stamps import caveat
from castmates.report.style import empty_figure, stamp, styled
from castmates.report.words import as_degradation, counted, listed
from castmates.study.spec import UNMANAGED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN = ["study", "mix", "lead", "antagonists", "partition", "baseline", "degradation_pct", "degradation_low"]
SHOWN += ["degradation_high", "within_low", "within_high", "blocks", "p_holm", "verdict", "platform", "possibly_biased"]
MIX, AGAIN = "mix", "A/A"  # what a row of the CSV is; else the name of a margin
FEW = 12  # rows of close cells up to which the panel against placebo is drawn too


def draw(results: Results) -> "tuple[Figure, pd.DataFrame]":
    """The figure and its source data."""
    effects = results.effects
    plainly = (effects["role"] == "lead") & (effects["partition"] == UNMANAGED) & (effects["antagonists"] != "")
    source = effects[plainly & effects["baseline"].isin(BASELINES)][SHOWN]
    with styled():
        if source.empty:
            return empty_figure(why_empty(results), caveat(results)), source
        rows = source.assign(panel=source["baseline"])
        again = again_rows(results, list(dict.fromkeys(source["lead"])))
        baselines = [name for name in BASELINES if (source["baseline"] == name).any()]
        means = bool(results.margins["degradation_pct"].notna().any())
        cells = grid(rows, baselines, means, bool(again))
        drawn = baselines[:1] if cells.close and len(cells.rows) > FEW else baselines
        panels = [_panel(results, rows, baseline, again) for baseline in drawn]
        notes = _notes(cells, source, len(drawn) < len(baselines), bool(again), results)
        return sheet(cells, panels, notes, results), _source(source, again, results)


def why_empty(results: Results) -> str:
    """Why there is nothing to see."""
    if len(results.lead_effects("solo", under_partitions=True)):
        return f"The study {results.name} has no mix without a partition."
    return f"No effect could be computed in the study {results.name}."


def again_rows(results: Results, leads: list[str]) -> dict[str, Row]:
    """The A/A control of each lead, as a degradation."""
    controls = results.controls[(results.controls["control"] == AGAIN) & results.controls["lead"].isin(leads)]
    return {
        row["lead"]: row | {
            "degradation_pct": as_degradation(row["ratio"]), "degradation_low": as_degradation(row["ratio_low"]),
            "degradation_high": as_degradation(row["ratio_high"]),
        }
        for row in records(controls)
    }  # fmt: skip


def _panel(results: Results, rows: "pd.DataFrame", baseline: str, again: dict[str, Row]) -> Panel:
    margins = results.margins[results.margins["baseline"] == baseline]
    means = {
        name: {row["who"]: row for row in records(margins[margins["margin"] == name])}
        for name in (SENSITIVITY, CONTENTIOUSNESS)
    }
    cells = cells_of(rows[rows["panel"] == baseline])
    # The control compares two solos: it stands beside what is compared with one.
    return Panel(
        f"against {baseline}", cells, means[CONTENTIOUSNESS], means[SENSITIVITY], again if baseline == "solo" else {}
    )


def _source(source: "pd.DataFrame", again: dict[str, Row], results: Results) -> "pd.DataFrame":
    import pandas as pd

    margins = results.margins
    sides = [
        margins[margins["margin"] == name].rename(columns={"who": side, "margin": "row"})
        for name, side in ((SENSITIVITY, "lead"), (CONTENTIOUSNESS, "antagonists"))
    ]
    controls = pd.DataFrame(list(again.values())).assign(row=AGAIN) if again else pd.DataFrame()
    parts = [part for part in (source.assign(row=MIX), *sides, controls) if len(part)]
    whole = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(whole.assign(partition=UNMANAGED)[["row", *SHOWN]])


def _notes(cells: Grid, source: "pd.DataFrame", solo_only: bool, again: bool, results: Results) -> list[str]:
    """The key to the marks that occur, and the stamp."""
    seen = set(source["verdict"])
    if len(source) < len(dict.fromkeys(source["lead"])) * source["antagonists"].nunique() * len(cells.panels):
        seen.add("no data")
    if again and (results.controls["verdict"] == "passes").any():
        seen.add("passes")
    said = [key(seen, results.margin, cells.close)]
    said += ["†: possibly biased by rejected windows"] if source["possibly_biased"].any() else []
    said += ["means: geometric, of whole rows and columns, grey where the interval holds 0"] if any(cells.means) else []
    said += ["ordered by clustering"] if cells.clustered else []
    said += ["against placebo: in the CSV"] if solo_only else []
    more = [counted(n, f"more {what}") for n, what in zip(cells.left_out, ("row", "column"), strict=True) if n]
    said += [f"{listed(more)} in the CSV"] if more else []
    width = letters(cells)
    return [*textwrap.wrap("; ".join(said), width), *textwrap.wrap(stamp(results.platforms, results.name), width)]
