"""The tables of a study, and the fresh blocks of those that confirm it -> what each partition gives, on disk."""

from pathlib import Path
from typing import TYPE_CHECKING

from castmates.analysis.partitions.pareto import pareto_table
from castmates.analysis.partitions.recommendation import recommendations
from castmates.analysis.partitions.sensitivity import knees, sensitivity_table
from castmates.pipeline.confirm import confirmed_rows
from castmates.pipeline.estimate_effects import write_table
from castmates.results.columns.partitions import PARETO, RECOMMENDATIONS
from castmates.results.columns.study import EFFECTS, WINDOWS, frame
from castmates.results.tables import Tables
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


def write_tables(plan: Plan, results: Path, limit_pct: float | None, output: Path) -> None:
    """Write sensitivity, knees, Pareto and, where there is a limit, recommendations."""
    tables = Tables(results)
    effects, windows = tables.needed("effects", EFFECTS), tables.needed("windows", WINDOWS)
    curves = sensitivity_table(plan, effects)
    pareto = _pareto(plan, results, effects, windows)
    found = {
        "sensitivity": curves,
        "knees": knees(curves, _ways(plan)),
        "pareto": pareto,
        "recommendations": of_limit(plan, pareto, limit_pct),
    }
    for name, table in found.items():
        write_table(table, output / name)


def of_limit(plan: Plan, pareto: "pd.DataFrame", limit_pct: float | None) -> "pd.DataFrame":
    """What is recommended for a limit; nothing without one, and nothing where no partition was asked for."""
    if limit_pct is None or not any(mix.partitions for mix in plan.mixes):
        return frame([], RECOMMENDATIONS)
    return recommendations(pareto, limit_pct, _ways(plan))


def _pareto(plan: Plan, results: Path, effects: "pd.DataFrame", windows: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    searched = pareto_table(plan, windows, effects)
    return pd.concat([searched, confirmed_rows(plan, results)], ignore_index=True).astype(dict(PARETO))


def _ways(plan: Plan) -> int | None:
    return plan.cache.ways if plan.cache is not None else None
