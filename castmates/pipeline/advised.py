"""What a study advises for a limit, from its tables."""

import pandas as pd

from castmates.analysis.partitions.recommendation import advice
from castmates.errors import CastmatesError
from castmates.project import Project
from castmates.results.columns.partitions import KNEES, PARETO
from castmates.results.columns.study import EFFECTS
from castmates.results.tables import Tables
from castmates.study.capabilities import PARTITIONS
from castmates.study.spec import Plan


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
