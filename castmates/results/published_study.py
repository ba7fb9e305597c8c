"""Reads what a published study measured, as a comparison takes it, and the study that it came from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.results.columns.launch import RECORD
from castmates.results.crate import DATA, MACHINE, PLAN, STUDY, TABLES, WORKLOADS
from castmates.results.find import NEEDED, Measured, read_measured
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.published import Published
from castmates.results.records import read_json, read_record
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.reading import read_keys
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


def read_published(published: Published) -> Measured:
    """What was measured: from the tables and records of a crate, or from the launches of results."""
    if not published.is_crate:
        return read_measured(published.root)
    folder = StudyFolder(published.root)
    published.checked(PLAN)
    plan = folder.measured(read_plan(folder.plan_file))
    if not plan.launches:
        raise CastmatesError(f"{published.named}: no launch of its plan has a record; there is nothing to replay.")
    records = tuple(read_record(published.checked(f"launches/{launch.path}/{RECORD}")) for launch in plan.launches)
    return Measured(
        folder=folder,
        plan=plan,
        windows=_windows(published, plan),
        records=records,
        machine=read_json(published.checked(MACHINE)) if published.has(MACHINE) else {},
        study=None,
    )


def published_effects(published: Published) -> "pd.DataFrame | None":
    """The published table of effects; None where there is none that can be read."""
    import pandas as pd

    path = f"{DATA}/effects.parquet" if published.is_crate else f"{TABLES}/effects.parquet"
    if not published.has(path):
        return None
    try:
        table = pd.read_parquet(published.checked(path))
    except (OSError, ValueError) as problem:
        why = str(problem).splitlines()[0].rstrip(".")
        raise CastmatesError(f"{published.named}: {path} is no table ({why}).") from None
    return table if {"mix", "member", "baseline", "partition", "slowdown"} <= {*table} else None


def read_source(published: Published) -> tuple[Study, Mapping[str, Workload]]:
    """The study of a crate, and its workloads."""
    if not published.has(STUDY):
        raise CastmatesError(
            f"{published.named}: this crate has no {STUDY}, so what to measure is not known; publish it again with "
            "`castmates paper` and the study's file."
        )
    study, catalogue = (written_text(published.checked(file), f"the published {file}") for file in (STUDY, WORKLOADS))
    workloads = read_keys(Catalogue, catalogue, f"{published.named}/{WORKLOADS}").workloads
    return read_keys(Study, study, f"{published.named}/{STUDY}"), workloads


def _windows(published: Published, plan: Plan) -> "pd.DataFrame":
    """The windows of these launches."""
    import pandas as pd

    file = published.checked(f"{DATA}/windows.parquet")
    try:
        windows = pd.read_parquet(file)
    except (OSError, ValueError) as problem:
        why = str(problem).splitlines()[0].rstrip(".")
        raise CastmatesError(f"{published.named}: {DATA}/{file.name} is no table ({why}).") from None
    if lacking := [name for name in NEEDED if name not in windows]:
        raise CastmatesError(
            f"{published.named}: {DATA}/{file.name} lacks the columns {', '.join(lacking)}; an earlier "
            "version wrote it."
        )
    ours = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in plan.launches])
    return windows.loc[pd.MultiIndex.from_frame(windows[["cohort", "launch"]]).isin(ours), NEEDED]
