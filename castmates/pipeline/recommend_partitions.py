"""The tables of a study, and the fresh blocks of those that confirm it: the facts of which advice is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from castmates.analysis.effects.pooling import pooled, without_left_out
from castmates.analysis.partitions.recommendation import advice
from castmates.errors import CastmatesError
from castmates.pipeline.confirm import confirmed_rows
from castmates.pipeline.estimate_effects import what_was_held
from castmates.pipeline.estimates import Estimates, write
from castmates.project import Project
from castmates.results.columns.block import WINDOWS
from castmates.results.columns.partitions import KNEES, PARETO
from castmates.results.columns.registry import written_by
from castmates.results.columns.services import SERVICES
from castmates.results.columns.study import BLOCKS, EFFECTS
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables, tables_of
from castmates.study.capabilities import PARTITIONS
from castmates.study.masks import popcount
from castmates.study.spec import Plan

RULE = "recommend_partitions"


@dataclass(frozen=True)
class _Part:
    """The facts of what is never pooled with the rest: a class of nodes, a model of processor."""

    asked: Plan
    plan: Plan  # with what the processor held
    windows: pd.DataFrame
    effects: pd.DataFrame
    limit_pct: float | None
    _folder: StudyFolder

    @property
    def cache_ways(self) -> int | None:
        """How many ways of the cache may be used."""
        return popcount(self.plan.cache.usable) if self.plan.cache else None

    @property
    def confirmed(self) -> pd.DataFrame:
        """What fresh launches found."""
        return confirmed_rows(self.asked, self._folder)


@dataclass(frozen=True)
class _Whole:
    """The facts of the study."""

    latency_limits: Mapping[str, float]
    _tables: Tables

    @property
    def services(self) -> pd.DataFrame:
        """The table of services, by class already."""
        return self._tables.read(SERVICES)


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
    parts = []
    for part in pooled(kept, windows):
        held, _ = what_was_held(part, folder)
        parts.append(_Part(part, held, windows, effects[effects["machine"] == part.machine], limit_pct, folder))
    estimates = Estimates(RULE, _Whole(latency, tables), parts)
    write(estimates, written_by(RULE, tables_of(plan, folder)), output)


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
