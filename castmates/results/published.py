"""Finds a published study: a folder that `castmates paper` wrote, a folder of results, or a launch inside either."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from castmates.errors import CastmatesError
from castmates.files import mapping_of, sha256_of, why
from castmates.results.columns.launch import RECORD
from castmates.results.crate import DATA, METADATA, PLAN
from castmates.results.find import find
from castmates.results.folder import StudyFolder
from castmates.results.links import refuse_links

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
