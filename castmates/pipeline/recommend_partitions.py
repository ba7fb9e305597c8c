"""The tables of a study, and the fresh blocks of those that confirm it -> what each partition gives."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from castmates.analysis.effects.pooling import joined, pooled, without_left_out
from castmates.analysis.explanations.loads import loads
from castmates.analysis.partitions.curve_table import curves_table
from castmates.analysis.partitions.pareto import pareto_table
from castmates.analysis.partitions.recommendation import recommendations, worthwhile
from castmates.analysis.partitions.sensitivity import knees, sensitivity_table
from castmates.errors import CastmatesError
from castmates.pipeline.confirm import confirmed_rows
from castmates.pipeline.estimate_effects import what_was_held
from castmates.project import Project
from castmates.results.columns.block import WINDOWS
from castmates.results.columns.partitions import KNEES, PARETO, RECOMMENDATIONS
from castmates.results.columns.registry import written_by
from castmates.results.columns.services import SERVICES
from castmates.results.columns.study import BLOCKS, EFFECTS, frame
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables, tables_of, write_table, written_together
from castmates.study.capabilities import PARTITIONS
from castmates.study.class_caches import cache_of
from castmates.study.masks import popcount
from castmates.study.spec import Plan


def write_tables(
    plan: Plan,
    folder: StudyFolder,
    limit_pct: float | None,
    output: Path,
    latency: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Write sensitivity, knees, Pareto and, where there is a limit, recommendations; `latency` are limits in ms."""
    tables = Tables(folder)
    effects, windows = tables.read(EFFECTS), tables.read(WINDOWS)
    kept = without_left_out(plan, tables.read(BLOCKS))
    parts = [
        _of_part(part, folder, windows, effects[effects["machine"] == part.machine], limit_pct)
        for part in pooled(kept, windows)
    ]
    found = {name: joined([part[name] for part in parts]) for name in parts[0]}
    names = tables_of(plan, folder)
    if "loads" in names:
        found["loads"] = loads(tables.read(SERVICES), latency)  # by class already
    with written_together(output, "recommend_partitions") as made:
        for name, columns in written_by("recommend_partitions", names).items():
            write_table(found[name].astype(dict(columns)), made / name)


def _of_part(
    plan: Plan, folder: StudyFolder, windows: pd.DataFrame, effects: pd.DataFrame, limit_pct: float | None
) -> dict[str, pd.DataFrame]:
    """The tables of what is never pooled with the rest: a class of nodes, a model of processor."""
    held, _ = what_was_held(plan, folder)
    curves = sensitivity_table(held, effects)
    searched = pareto_table(held, windows, effects)
    pareto = pd.concat([searched, confirmed_rows(plan, folder)], ignore_index=True).astype(dict(PARETO))
    found = {
        "pareto": pareto,
        "knees": knees(curves, popcount(plan.cache.usable) if plan.cache else None),
        "effects": effects,
    }
    return {
        "sensitivity": curves,
        "knees": found["knees"],
        "pareto": pareto,
        "recommendations": of_limit(plan, found, limit_pct),
        "curves": curves_table(held, effects),
    }


def of_limit(plan: Plan, found: Mapping[str, pd.DataFrame], limit_pct: float | None) -> pd.DataFrame:
    """What is advised for a limit or, without one, at the knees; nothing where no partition was asked for.

    `found` has the tables pareto, knees and effects.
    """
    if not PARTITIONS.asked(plan):
        return frame([], RECOMMENDATIONS)
    known = recommendations(found["pareto"], limit_pct, found["knees"] if limit_pct is None else None)
    advice = worthwhile(known, found["effects"])
    ways = [cache.ways if (cache := cache_of(plan, name)) else None for name in advice["machine"]]
    return advice.assign(cache_ways=pd.array(ways, dtype="Int64"))


def advised(project: Project, plan: Plan, limit_pct: float | None) -> pd.DataFrame:
    """What is advised for a limit, for the study's own or, without any, at the knees."""
    tables = Tables(project.results, project.study_file)
    limit = project.study.recommend.lead_loss if limit_pct is None else limit_pct
    there = (PARETO, KNEES, EFFECTS) if PARTITIONS.asked(plan) else ()
    advice = of_limit(plan, {table.name: tables.read(table) for table in there}, limit)
    if advice.empty:
        raise CastmatesError(
            f"{project.study_file}: no partition was measured, so none can be recommended; add `cache.sweeps`, such as "
            "`split: all`, and run the sweep (castmates help partitions)."
        )
    return advice
