"""What a sweep leaves for its jobs on other machines, so that a job neither plans nor reads the study.

Light: Snakemake reads the workflow anew for each job, and this module then stands for the project and its plan.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import mapping_of, replace_text, why
from castmates.results.folder import RESULTS, StudyFolder


@dataclass(frozen=True)
class Terms:
    """What the rules need to know of the study as a whole."""

    study: str  # its name
    study_file: str
    study_text: str  # fingerprint
    plan: str  # fingerprint
    modelled: bool
    cache: str  # the folder of environments and inputs
    mixes: Sequence[str]
    tables: Sequence[str]
    figures: Sequence[str]
    precision: float | None
    margin: float
    lead_loss: float | None
    protocol: int
    trials: Mapping[str, str]  # short names of the records that results are shown with
    adaptive: bool = False
    profiles: Sequence[str] = ()  # launches in which leads are traced, by cohort and number
    traces: Sequence[str] = ()  # names of the traces that each sweep makes

    @property
    def folder(self) -> StudyFolder:
        """The folder of the study's results."""
        return StudyFolder.of(self.study)


@dataclass(frozen=True)
class LaunchTerms:
    """What the rule that measures a launch needs to know of it."""

    spec: str  # fingerprint: what decides whether it must be measured again
    priority: int
    waits: bool  # for the decision how many rounds it has
    environments: Sequence[str]  # the files that are there when its environments are built
    inputs: Sequence[str]  # the same of its data sets


@dataclass(frozen=True)
class Found:
    """What a sweep finds out on its way: the precision decides how many launches there are."""

    launches: tuple[str, ...]  # that the study consists of
    looks: int  # that were taken


@dataclass(frozen=True)
class WrittenSweep:
    """The sweep as one of its jobs sees it."""

    terms: Terms
    # What decides whether a launch has to be measured is decided; a job only needs the inputs that it reads.
    undecided: bool = False
    torn: frozenset[str] = frozenset()
    torn_note: str = ""

    def launch(self, path: str) -> LaunchTerms:
        """What is needed to know of a launch of the plan."""
        cohort, _, number = path.rpartition("/")
        content = _read(_cohort_file(self.terms.folder, cohort))
        try:
            return LaunchTerms(**content["common"], **content["launches"][number])
        except (KeyError, TypeError):
            raise CastmatesError(f"{self.terms.folder}: the sweep that runs now has no launch '{path}'.") from None

    def waits_for(self, path: str, files: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 (as the sweep asks)
        """What a launch that runs now needs: all of it."""
        return files

    @property
    def launches(self) -> Sequence[str]:
        """The launches that the study consists of."""
        return self._found.launches

    @property
    def looks(self) -> list[Path]:
        """What the looks at the precision left."""
        return [self.terms.folder.look_file(number + 1) for number in range(self._found.looks)]

    @cached_property
    def _found(self) -> Found:
        content = _read(_found_file(self.terms.folder))
        return Found(tuple(content["launches"]), content["looks"])


def written_sweep(study_file: Path) -> WrittenSweep:
    """The sweep of this study that has started us."""
    file = _terms_file(study_file)
    try:
        terms = Terms(**_read(file))
    except TypeError:
        raise CastmatesError(f"{file}: another version of Castmates wrote this; run the sweep again.") from None
    if not terms.modelled and not _mark(Path(terms.cache)).is_file():
        raise CastmatesError(
            f"this node does not see the cache {terms.cache} of the machine that started the sweep: set "
            "CASTMATES_CACHE to a folder on a file system that all nodes share, and run the same command again."
        )
    return WrittenSweep(terms)


def write_sweep(terms: Terms, launches: Mapping[str, LaunchTerms]) -> None:
    """Leave this for the jobs; cohorts first, so that what names them is never older."""
    by_cohort: dict[str, dict[str, LaunchTerms]] = {}
    for path, launch in launches.items():
        cohort, _, number = path.rpartition("/")
        by_cohort.setdefault(cohort, {})[number] = launch
    for cohort, ours in by_cohort.items():
        _write(_cohort_file(terms.folder, cohort), _folded(ours))
    if not terms.modelled:
        replace_text(_mark(Path(terms.cache)), "All nodes of a cluster have to see this folder.\n")
    _write(_terms_file(Path(terms.study_file)), asdict(terms))


def write_found(terms: Terms, found: Found) -> None:
    """Leave what was found out."""
    _write(_found_file(terms.folder), asdict(found))


def _folded(launches: Mapping[str, LaunchTerms]) -> dict[str, Any]:
    """What all launches of a cohort have in common, once: thousands have the same environments."""
    records = {number: asdict(launch) for number, launch in launches.items()}
    first = next(iter(records.values()))
    common = {key: value for key, value in first.items() if all(each[key] == value for each in records.values())}
    return {
        "common": common,
        "launches": {
            number: {key: value for key, value in record.items() if key not in common}
            for number, record in records.items()
        },
    }


def _cohort_file(folder: StudyFolder, cohort: str) -> Path:
    return folder.for_jobs / "cohorts" / f"{cohort}.json"


def _found_file(folder: StudyFolder) -> Path:
    return folder.for_jobs / "found.json"


def _terms_file(study_file: Path) -> Path:
    """By the study's file, because a job gets no other name; relative, since nodes may see the project elsewhere."""
    return RESULTS / ".jobs" / f"{hashlib.sha256(str(study_file).encode()).hexdigest()[:16]}.json"


def _mark(cache: Path) -> Path:
    return cache / ".shared"


def _write(file: Path, content: Mapping[str, Any]) -> None:
    replace_text(file, json.dumps(content) + "\n")


def _read(file: Path) -> dict[str, Any]:
    try:
        return mapping_of(file)
    except (OSError, ValueError) as problem:
        raise CastmatesError(
            f"{file.absolute()} cannot be read on this node ({why(problem)}): the folder that the sweep was "
            "started in has to lie on a file system that all nodes share."
        ) from None
