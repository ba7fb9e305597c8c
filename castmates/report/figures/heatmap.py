"""The figure `heatmap`: what each lead loses beside each of its antagonists, against alone and against placebo."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.effects.effects import BASELINES, CONTENTIOUSNESS, SENSITIVITY
from castmates.analysis.effects.verdicts import NO_DATA
from castmates.report.figures.heatmap_grid import Grid, Panel, cells_of, grid, keys_of, matrices, panelled
from castmates.report.figures.sheet import drawing
from castmates.report.results import Results, records
from castmates.report.text.words import READ_ALOUD, between, counted, listed, loss_seen, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Loss of each mix", "part": "losses", "place": 40}
SHOWN = ["study", "mix", "lead", "antagonists", "partition", "baseline", "loss_pct", "loss_low"]
SHOWN += ["loss_high", "within_low", "within_high", "launches", "p_holm", "verdict", "platform", "possibly_biased"]
MIX = "mix"  # what a row of the CSV is; else the name of a margin
FEW = 12  # rows of close cells up to which the panel against placebo is drawn too


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    effects = _effects(results)
    source = effects if lacking(results) else _source(effects, results)
    return drawing(results, source, lacking, lambda: _figure(effects, results))


def _figure(effects: pd.DataFrame, results: Results) -> Figure:
    rows = panelled(effects, "baseline")
    baselines = [name for name in BASELINES if (rows["baseline"] == name).any()]
    names = list(dict.fromkeys(name for each in baselines for name in rows.loc[rows["baseline"] == each, "panel"]))
    cells = grid(rows, names, means=bool(results.margins["loss_pct"].notna().any()))
    alone_only = cells.close and len(cells.rows) > FEW and len(baselines) > 1
    drawn = rows[rows["baseline"] == baselines[0]] if alone_only else rows
    panels = [
        _panel(results, drawn[drawn["panel"] == name], f"against {title}")
        for name, title in zip(names, cells.titles, strict=True)
        if (drawn["panel"] == name).any()
    ]
    return matrices(cells, panels, _key(cells, rows, alone_only, results), results)


def _key(cells: Grid, source: pd.DataFrame, alone_only: bool, results: Results) -> str:
    """The marks that occur, and what is not drawn."""
    parts = keys_of(cells, source, results)
    parts += ["against placebo: in the CSV"] if alone_only else []
    more = [counted(n, f"more {what}") for n, what in zip(cells.left_out, ("row", "column"), strict=True) if n]
    return "; ".join(parts + ([f"{listed(more)} in the CSV"] if more else []))


def _effects(results: Results) -> pd.DataFrame:
    effects = results.effects
    plainly = (effects["role"] == "lead") & (effects["partition"] == UNMANAGED) & (effects["antagonists"] != "")
    return effects[plainly & effects["baseline"].isin(BASELINES)][SHOWN]


def caption(results: Results) -> str:
    effects = results.lead_effects("alone")
    placebo = " or beside a placebo" if len(results.lead_effects("placebo")) else ""
    return (
        f"What each lead (columns) loses beside each antagonist (rows), in per cent of its rate alone{placebo}, with "
        f"95 % t intervals {between(effects)} "
        f"({units(effects['launches'])}); a minus is a gain. Verdicts are adjusted for all mixes (Holm). "
    )


def alternative(results: Results) -> str:
    rows = records(results.lead_effects("alone"))
    if not rows:
        return lacking(results)
    parts = []
    for row in rows[:READ_ALOUD]:
        known = "" if row["verdict"] == NO_DATA else f" {loss_seen(row, '%').whole}"
        on = f" ({row['platform']})" if len(results.platforms) > 1 else ""
        parts.append(f"{plain(row['lead'])} beside {plain(row['antagonists'])}{on}{known}, {row['verdict']}")
    more = f"; and {len(rows) - READ_ALOUD} more in the table of effects" if len(rows) > READ_ALOUD else ""
    return f"Losses against running alone: {'; '.join(parts)}{more}."


def lacking(results: Results) -> str:
    if len(_effects(results)):
        return ""
    if len(results.lead_effects("alone", under_partitions=True)):
        return f"No mix of the study {results.name} was measured without a partition."
    return f"No loss could be computed in the study {results.name}."


def _panel(results: Results, rows: pd.DataFrame, title: str) -> Panel:
    """The matrix of these rows, which are of one baseline and one platform."""
    baseline, platforms = rows["baseline"].iloc[0], {*rows["platform"], ""}
    margins = results.margins
    margins = margins[(margins["baseline"] == baseline) & margins["platform"].isin(platforms)]
    means = {
        name: {row["who"]: row for row in records(margins[margins["margin"] == name])}
        for name in (SENSITIVITY, CONTENTIOUSNESS)
    }
    return Panel(title, cells_of(rows), means[CONTENTIOUSNESS], means[SENSITIVITY])


def _source(source: pd.DataFrame, results: Results) -> pd.DataFrame:
    margins = results.margins
    sides = [
        margins[margins["margin"] == name].rename(columns={"who": side, "margin": "row"})
        for name, side in ((SENSITIVITY, "lead"), (CONTENTIOUSNESS, "antagonists"))
    ]
    whole = pd.concat([part for part in (source.assign(row=MIX), *sides) if len(part)], ignore_index=True)
    return pd.DataFrame(whole.assign(partition=UNMANAGED)[["row", *SHOWN]])
