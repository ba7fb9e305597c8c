"""The tables of a study, and the fresh launches of those that confirm it: the facts of which advice is made."""

from functools import partial
from pathlib import Path

import pandas as pd

from castmates.analysis.effects.pooling import pooled, without_left_out
from castmates.analysis.partitions.recommendation import advice
from castmates.errors import CastmatesError
from castmates.pipeline.confirm import confirmed_rows
from castmates.pipeline.estimate_effects import what_was_held
from castmates.pipeline.estimates import Estimates, write
from castmates.project import Project
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.partitions import KNEES, PARETO
from castmates.results.columns.registry import written_by
from castmates.results.columns.services import SERVICES
from castmates.results.columns.study import EFFECTS, LAUNCHES
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables, tables_of
from castmates.study.capabilities import PARTITIONS
from castmates.study.masks import popcount
from castmates.study.spec import Plan

RULE = "recommend_partitions"


def write_tables(plan: Plan, folder: StudyFolder, limit_pct: float | None, output: Path) -> None:
    """Write what the study asks for of sensitivity, knees, Pareto, recommendations, curves and loads."""
    tables = Tables(folder)
    effects, windows = tables.read(EFFECTS), tables.read(WINDOWS)
    kept = without_left_out(plan, tables.read(LAUNCHES))
    parts = [
        {
            "plan": held,
            "windows": windows,
            "effects": effects[effects["machine"] == part.machine],
            "limit_pct": limit_pct,
            "cache_ways": popcount(part.cache.usable) if part.cache else None,
            "confirmed": partial(confirmed_rows, part, folder),
        }
        for part in pooled(kept, windows)
        for held, _ in [what_was_held(part, folder)]
    ]
    # Services are by class already.
    whole = {"latency_limits": plan.latency_limits, "services": partial(tables.read, SERVICES)}
    write(Estimates(RULE, whole, parts), written_by(RULE, tables_of(plan, folder)), output)


def advised(project: Project, plan: Plan, limit_pct: float | None) -> pd.DataFrame:
    """What is advised for a limit, for the study's own or, without any, at the knees."""
    tables = Tables(project.results, project.study_file)
    limit = project.study.recommend.lead_loss if limit_pct is None else limit_pct
    if PARTITIONS.asked(plan):
        found = advice(plan, tables.read(PARETO), tables.read(KNEES), tables.read(EFFECTS), limit)
        if len(found):
            return found
    raise CastmatesError(
        f"{project.study_file}: no partition was measured, so none can be recommended; add `cache.sweeps`, such as "
        "`split: all`, and run the sweep (castmates help partitions)."
    )
