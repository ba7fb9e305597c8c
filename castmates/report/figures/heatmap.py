"""The figure `heatmap`: what each lead loses beside each of its antagonists, against solo and against placebo."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.effects.margins import BASELINES, CONTENTIOUSNESS, SENSITIVITY
from castmates.report.figures.heatmap_cells import key
from castmates.report.figures.heatmap_grid import Grid, Row, cells_of, grid, panelled
from castmates.report.figures.heatmap_sheet import Panel, sheet, width_of
from castmates.report.figures.panels import small_print
from castmates.report.figures.style import empty_figure, stamp, styled
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import (
    READ_ALOUD,
    as_degradation,
    counted,
    interval,
    listed,
    number,
    plain,
    units,
    within,
)
from castmates.study.spec import UNMANAGED

SHOWN = ["study", "mix", "lead", "antagonists", "partition", "baseline", "degradation_pct", "degradation_low"]
SHOWN += ["degradation_high", "within_low", "within_high", "blocks", "p_holm", "verdict", "platform", "possibly_biased"]
MIX, AGAIN = "mix", "A/A"  # what a row of the CSV is; else the name of a margin
FEW = 12  # rows of close cells up to which the panel against placebo is drawn too


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    effects = results.effects
    plainly = (effects["role"] == "lead") & (effects["partition"] == UNMANAGED) & (effects["antagonists"] != "")
    source = effects[plainly & effects["baseline"].isin(BASELINES)][SHOWN]
    with styled():
        if source.empty:
            return empty_figure(why_empty(results), caveat(results)), source
        rows = panelled(source, "baseline")
        again = again_rows(results, list(dict.fromkeys(source["lead"])))
        baselines = [name for name in BASELINES if (rows["baseline"] == name).any()]
        names = [
            name for baseline in baselines for name in dict.fromkeys(rows.loc[rows["baseline"] == baseline, "panel"])
        ]
        means = bool(results.margins["degradation_pct"].notna().any())
        cells = grid(rows, names, means, bool(again))
        solo_only = cells.close and len(cells.rows) > FEW and len(baselines) > 1
        drawn = rows[rows["baseline"] == baselines[0]] if solo_only else rows
        panels = [
            _panel(results, drawn[drawn["panel"] == name], f"against {title}", again)
            for name, title in zip(names, cells.titles, strict=True)
            if (drawn["panel"] == name).any()
        ]
        notes = _notes(cells, rows, solo_only, bool(again), results)
        return sheet(cells, panels, notes, results), _source(source, again, results)


def caption(results: Results) -> str:
    """What stands below the figure, before what all captions say."""
    effects = results.lead_effects("solo")
    blocks = units(effects["blocks"])
    return (
        "Degradation of the lead (columns) beside its antagonists (rows), in per cent: the share of its solo rate, or "
        "of its rate beside placebos, that it loses. Positive numbers are losses. Intervals are 95 % t intervals "
        f"between launches ({blocks}); where there are fewer than three launches the dashed cells show, in brackets, "
        "the interval within launch. Significance is Holm-adjusted over the rows of the same baseline. The row A/A "
        "compares each lead's solo windows with a second set; means (the lead's sensitivity, the antagonist's "
        "contentiousness) are geometric and given where no cell is missing. From six rows or columns on, those that "
        "lose alike stand side by side (average linkage). "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    rows = records(results.lead_effects("solo"))
    if not rows:
        return why_empty(results)
    parts = []
    for row in rows[:READ_ALOUD]:
        low, high = (
            within(row) if row["verdict"] == "too few blocks" else (row["degradation_low"], row["degradation_high"])
        )
        known = "" if row["verdict"] == "no data" else f" {number(row['degradation_pct'])} % {interval(low, high)}"
        on = f" ({row['platform']})" if len(results.platforms) > 1 else ""
        parts.append(f"{plain(row['lead'])} beside {plain(row['antagonists'])}{on}{known}, {row['verdict']}")
    more = f"; and {len(rows) - READ_ALOUD} more in the table of effects" if len(rows) > READ_ALOUD else ""
    return f"Heatmap of degradation against solo: {'; '.join(parts)}{more}."


def why_empty(results: Results) -> str:
    """Why there is nothing to see."""
    if len(results.lead_effects("solo", under_partitions=True)):
        return f"The study {results.name} has no mix without a partition."
    return f"No effect could be computed in the study {results.name}."


def again_rows(results: Results, leads: list[str]) -> dict[tuple[str, str], Row]:
    """The A/A control of each lead on each platform, as a degradation."""
    controls = results.controls[(results.controls["control"] == AGAIN) & results.controls["lead"].isin(leads)]
    return {
        (row["lead"], row["platform"]): row | {
            "degradation_pct": as_degradation(row["ratio"]), "degradation_low": as_degradation(row["ratio_low"]),
            "degradation_high": as_degradation(row["ratio_high"]),
        }
        for row in records(controls)
    }  # fmt: skip


def _panel(results: Results, rows: pd.DataFrame, title: str, again: dict[tuple[str, str], Row]) -> Panel:
    """The matrix of these rows, which are of one baseline and one platform."""
    baseline, platforms = rows["baseline"].iloc[0], {*rows["platform"], ""}
    margins = results.margins
    margins = margins[(margins["baseline"] == baseline) & margins["platform"].isin(platforms)]
    means = {
        name: {row["who"]: row for row in records(margins[margins["margin"] == name])}
        for name in (SENSITIVITY, CONTENTIOUSNESS)
    }
    # The control compares two solos: it stands beside what is compared with one.
    controls = {lead: row for (lead, platform), row in again.items() if baseline == "solo" and platform in platforms}
    return Panel(title, cells_of(rows), means[CONTENTIOUSNESS], means[SENSITIVITY], controls)


def _source(source: pd.DataFrame, again: dict[tuple[str, str], Row], results: Results) -> pd.DataFrame:
    margins = results.margins
    sides = [
        margins[margins["margin"] == name].rename(columns={"who": side, "margin": "row"})
        for name, side in ((SENSITIVITY, "lead"), (CONTENTIOUSNESS, "antagonists"))
    ]
    controls = pd.DataFrame(list(again.values())).assign(row=AGAIN) if again else pd.DataFrame()
    parts = [part for part in (source.assign(row=MIX), *sides, controls) if len(part)]
    whole = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(whole.assign(partition=UNMANAGED)[["row", *SHOWN]])


def _notes(cells: Grid, source: pd.DataFrame, solo_only: bool, again: bool, results: Results) -> list[str]:
    """The key to the marks that occur, and the stamp."""
    seen = set(source["verdict"])
    if len(source) < len(dict.fromkeys(source["lead"])) * source["antagonists"].nunique() * len(cells.panels):
        seen.add("no data")
    if again and (results.controls["verdict"] == "passes").any():
        seen.add("passes")
    parts = [key(seen, results.margin, cells.close)]
    parts += ["†: possibly biased by rejected windows"] if source["possibly_biased"].any() else []
    parts += (
        ["means: geometric, of whole rows and columns, grey where the interval holds 0"] if any(cells.means) else []
    )
    parts += ["ordered by clustering"] if cells.clustered else []
    parts += ["against placebo: in the CSV"] if solo_only else []
    more = [counted(n, f"more {what}") for n, what in zip(cells.left_out, ("row", "column"), strict=True) if n]
    parts += [f"{listed(more)} in the CSV"] if more else []
    return small_print(width_of(cells), "; ".join(parts), stamp(results.platforms, results.name))
