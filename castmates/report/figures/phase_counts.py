"""The figure `phase_counts`: what is counted in each phase of a lead's step beside its antagonists, against alone."""

import math

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.core import once
from castmates.analysis.explanations.phases import (
    NAMES,
    NEEDED,
    better_source,
    counts_by_phase,
    is_outermost,
    unmanaged_against_alone,
)
from castmates.report.figures.antagonists import beside as beside_of
from castmates.report.figures.counters import SECONDS, how_sure, most_changed, ordered, ratio_panels
from castmates.report.figures.phases import times
from castmates.report.figures.sheet import drawing
from castmates.report.results import Results, records
from castmates.report.text.words import counted, plain, units

FIGURE = {"title": "Counters by phase", "part": "why", "place": 250, "needs": "PHASES"}
METRICS = 6  # of a phase that are drawn: those that change most
DRAWN = 12  # values that the text alternative names
KEYS = ["lead", "member", "platform", "phase"]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: every phase and metric, as both ways of counting have it."""
    source = table(results)
    return drawing(results, source, lacking, lambda: _figure(shown(results), results))


@once
def table(results: Results) -> pd.DataFrame:
    """What was counted in every phase of every effect of a lead that reports phases."""
    return counts_by_phase(times(results), results.launch_parts("counters", NEEDED, NAMES))


@once
def shown(results: Results) -> pd.DataFrame:
    """What is drawn: parts of the step without a partition, of each the metrics that change most; clocks are time."""
    rows = unmanaged_against_alone(table(results))
    rows = better_source(rows[rows["phase"].map(is_outermost).astype(bool) & ~rows["metric"].isin(SECONDS)])
    if rows.empty:
        return rows
    rows = most_changed(rows)
    change = rows.assign(change=rows["ratio"].map(math.log).abs()).groupby([*KEYS, "metric"], sort=False)["change"]
    kept = change.max().reset_index().sort_values("change", ascending=False, kind="stable").groupby(KEYS).head(METRICS)
    return ordered(rows.merge(kept[[*KEYS, "metric"]], on=[*KEYS, "metric"]), results)


def lacking(results: Results) -> str:
    if len(shown(results)):
        return ""
    return f"Nothing was counted in the phases of any lead of the study {results.name} (castmates help phases)."


def _figure(rows: pd.DataFrame, results: Results) -> Figure:
    panels = [(f"{plain(str(lead))}: {phase}", own) for (lead, *_, phase), own in rows.groupby(KEYS, sort=False)]
    sheet, rows, more = ratio_panels(panels, results)
    parts = how_sure(rows)
    by_time = set(rows["source"]) - {"in-process"}
    parts += ["some counts are divided among phases by time (source in the CSV)"] if by_time else []
    parts += [f"{counted(more, 'more phase')} in the CSV"] if more else []
    return sheet.finish("; ".join(parts))


def caption(results: Results) -> str:
    if reason := lacking(results):
        return f"{reason} "
    return (
        "What was counted in each phase of a lead's step, per step, beside its antagonists over alone, with 95 % t "
        f"intervals between launches ({units(shown(results)['launches'])}). Of each phase the {METRICS} metrics that "
        "change most are drawn. "
    )


def alternative(results: Results) -> str:
    if reason := lacking(results):
        return reason
    rows = sorted(records(shown(results)), key=lambda row: -abs(math.log(row["ratio"])))
    parts = [
        f"{row['metric']} in {row['phase']} of {plain(row['lead'])} beside {beside_of(row['mix'])} "
        f"{row['ratio']:.3g} times alone"
        for row in rows[:DRAWN]
    ]
    more = f"; and {len(rows) - DRAWN} more" if len(rows) > DRAWN else ""
    return f"Counters by phase beside antagonists over alone, the largest changes first: {'; '.join(parts)}{more}."
