"""The figure `topdown_phases`: where the slots of a lead's processors go in each phase of its step."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.explanations.phases import is_outermost
from castmates.report.figures import topdown
from castmates.report.figures.phases import losses
from castmates.report.figures.sheet import drawing
from castmates.report.figures.topdown import bars, beside_whom, change_words, largest_changes
from castmates.report.results import Results
from castmates.report.text.words import plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Top-Down by phase", "part": "why", "place": 260, "needs": "TOPDOWN_PHASES"}
DRAWN = 12  # values that the text alternative names


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the shares of every phase, and their changes against alone."""
    shares, changes = of_phases(results)
    source = topdown.with_points(shares, changes)
    return drawing(results, source, lacking, lambda: _figure(shares, changes, results))


def _figure(shares: pd.DataFrame, changes: pd.DataFrame, results: Results) -> Figure:
    shown = topdown.ordered(_in_order(_outermost(shares), results), results)
    groups = shown.groupby(["platform", "lead", "member", "phase"], sort=False)
    panels = [(f"{plain(str(lead))}: {phase}", rows) for (_, lead, _, phase), rows in groups]
    return bars(panels, changes, "phase", results)


def of_phases(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The shares of phases, and their changes against alone: what the figure `topdown` has of whole windows."""
    shares, changes = topdown.tables(results)
    return shares[shares["phase"] != ""], changes[changes["phase"] != ""]


def lacking(results: Results) -> str:
    if len(_outermost(of_phases(results)[0])):
        return ""
    few = "" if topdown.lacking(results) else ": its intervals show too little of any phase (castmates help topdown)"
    return topdown.uncounted(results) or f"No phase in the study {results.name} has Top-Down shares{few}."


def _outermost(table: pd.DataFrame) -> pd.DataFrame:
    """What has a bar: parts of the step, without a partition."""
    return table[table["phase"].map(is_outermost).astype(bool) & (table["partition"] == UNMANAGED)]


def _in_order(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Phases as they follow each other in the step."""
    order = {phase: place for place, phase in enumerate(dict.fromkeys(losses(results)["phase"]))}
    place = table["phase"].map(lambda phase: order.get(phase, len(order)))
    return table.loc[place.sort_values(kind="stable").index]


def caption(results: Results) -> str:
    """What the figure shows, and what it is made of."""
    if reason := lacking(results):
        return f"{reason} "
    changes = _outermost(of_phases(results)[1])
    return (
        "Where the issue slots go in each phase of a lead's step, in per cent, alone and beside its antagonists. "
        f"Right: the category that changed most, in points, with its 95 % t interval between launches "
        f"({units(changes['launches'])}), not widened for having been picked. "
    )


def alternative(results: Results) -> str:
    if reason := lacking(results):
        return reason
    largest = largest_changes(_outermost(of_phases(results)[1]))
    parts = [
        f"{row['phase']} of {plain(row['lead'])} beside {beside_whom(row['mix'])}: {change_words(row)}"
        for row in largest[:DRAWN]
    ]
    more = f"; and {len(largest) - DRAWN} more" if len(largest) > DRAWN else ""
    return f"Largest changes of Top-Down shares by phase, in points: {'; '.join(parts)}{more}."
