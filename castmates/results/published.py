"""Finds a published study: a folder that `castmates paper` wrote, a folder of results, or a launch inside either."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from castmates.errors import CastmatesError
from castmates.files import mapping_of, sha256_of, why, written_text
from castmates.results.columns.launch import RECORD
from castmates.results.find import NEEDED, Measured, find, read_measured
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.records import read_json, read_record, refuse_links
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.reading import read_keys
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


# The names of a published study in its crate, which `castmates paper` writes and `castmates sweep --replay` reads.

METADATA = "ro-crate-metadata.json"
PLAN, MACHINE = "plan.json", "machine.json"
DATA, TABLES = "data", "tables"  # the study's tables in a crate, and in the folder of its results
REPLAY = "replay"  # the folder with what the study needs to be measured by others
STUDY, WORKLOADS = f"{REPLAY}/study.yaml", f"{REPLAY}/workloads/published.yaml"


ARCHIVES = (".zip", ".gz", ".xz", ".tar", ".tgz")
LAUNCHES = "launches"


@dataclass(frozen=True)
class Published:
    """Where a published study lies."""

    named: str  # as it was named
    root: Path
    launch: str  # COHORT/NUMBER, or COHORT; "" for all of it
    digests: Mapping[str, str] | None  # SHA-256 by path in the crate; None of a folder of results

    @property
    def is_crate(self) -> bool:
        """Whether `castmates paper` wrote it."""
        return self.digests is not None

    @property
    def digest(self) -> str:
        """By which a replay knows what it measures again: that of the plan."""
        return hashlib.sha256((self.root / PLAN).read_bytes()).hexdigest()

    def has(self, path: str) -> bool:
        """Whether this file is there."""
        return (self.root / path).is_file()

    def checked(self, path: str) -> Path:
        """A file of it; in a crate exactly as it was published."""
        file = self.root / path
        if self.digests is None:
            return file
        if path not in self.digests:
            raise CastmatesError(
                f"{self.named}: {METADATA} does not list {path}, which a replay needs; publish the study again with "
                "`castmates paper`."
            )
        try:
            found = sha256_of(file)
        except (OSError, ValueError) as problem:
            raise CastmatesError(f"{self.named}: {path} cannot be read ({why(problem)}).") from None
        if found != self.digests[path]:
            raise CastmatesError(
                f"{self.named}: {path} is not as it was published (its SHA-256 is {found[:12]}…, and {METADATA} has "
                f"{self.digests[path][:12]}…); take an unchanged copy."
            )
        return file


def find_published(named: Path) -> Published:
    """The published study that is named."""
    place = named.parent if named.name == RECORD else named
    if named.suffix in (".yaml", ".yml") and named.is_file():
        return _published(named, find(named)[0].path, "")
    for root in (place, *place.parents):
        if root.is_file() and root.suffix in ARCHIVES:
            raise CastmatesError(f"{root}: nothing is unpacked here; unpack it yourself, and give the folder inside.")
        if (root / PLAN).is_file():
            return _published(named, root, _launch(named, place.relative_to(root)))
    what = "no published study" if named.exists() else "nothing"
    raise CastmatesError(
        f"{named}: there is {what} here; give a folder that `castmates paper` wrote, a folder results/<study>, "
        "or launches/<cohort>/<number> inside one of them."
    )


def _published(named: Path, root: Path, launch: str) -> Published:
    refuse_links(StudyFolder(root))
    metadata = root / METADATA
    digests = _digests(metadata, named) if metadata.is_file() else None
    cohort = launch.partition("/")[0]
    if launch and not (root / LAUNCHES / launch).is_dir():
        known = sorted(each.name for each in (root / LAUNCHES).glob("*") if each.is_dir())
        there = ", ".join(known[:12]) or "none"
        raise CastmatesError(f"{named}: there is no launch '{launch}' (cohorts: {there}).")
    if digests is None and not StudyFolder(root).record_files(cohort or "*"):
        raise CastmatesError(f"{named}: {root} has no launch that was measured; there is nothing to replay.")
    return Published(str(named), root, launch, digests)


def _launch(named: Path, inside: Path) -> str:
    """COHORT/NUMBER of a path inside a study; "" for the study itself."""
    parts = inside.parts
    if not parts:
        return ""
    if parts[0] != LAUNCHES or not 2 <= len(parts) <= 3:
        raise CastmatesError(
            f"{named}: this is inside a study and no launch; give the study itself, or {LAUNCHES}/<cohort>/<number> "
            "inside it."
        )
    return "/".join(parts[1:])


def _digests(metadata: Path, named: Path) -> dict[str, str]:
    """The digest of every file that the crate lists."""
    try:
        graph = mapping_of(metadata)["@graph"]
        files = {unquote(each["@id"]): each["sha256"] for each in graph if "sha256" in each}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise CastmatesError(f"{named}: {METADATA} is no RO-Crate ({why(problem)}).") from None
    if PLAN not in files or f"{DATA}/windows.parquet" not in files:
        raise CastmatesError(
            f"{named}: this crate has no {PLAN} with {DATA}/windows.parquet, so `castmates paper` did not write it, or "
            "did not finish."
        )
    return files


# What a published study measured, as a comparison takes it, and the study that it came from.


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
