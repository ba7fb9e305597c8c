"""What the page shows of a study that was measured on several models of processor without classes: one of them.

Numbers of different processors are never pooled, and mixes have the same names on all of them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from castmates.analysis.effects.pooling import pooled, without_left_out
from castmates.results.columns.registry import TABLES
from castmates.study.spec import Plan

if TYPE_CHECKING:
    from castmates.report.results import Results


def shown_part(results: "Results") -> Plan | None:
    """The part of the plan that the most launches measured; None where nothing has to be left out."""
    if results.plan.machines or results.effects["machine"].nunique() < 2:
        return None
    return pooled(without_left_out(results.plan, results.launches), results.windows)[0]


def tables_of(results: "Results", part: Plan) -> dict[str, Any]:
    """Fields of the results with the rows of this part alone."""
    places = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in part.launches])
    changes: dict[str, Any] = {"plan": part.model_copy(update={"machines": ()})}
    for name, columns in TABLES.items():
        if not columns.rule:
            continue
        table = getattr(results, name)
        if name in ("windows", "launches"):
            changes[name] = table[pd.MultiIndex.from_frame(table[["cohort", "launch"]]).isin(places)]
        elif "machine" in columns:
            changes[name] = table[table["machine"] == part.machine]
    return changes


def restricted(results: "Results", part: Plan, recorded: Any) -> "Results":  # noqa: ANN401 (records)
    """The results of this part."""
    return replace(results, **tables_of(results, part), recorded=recorded)
