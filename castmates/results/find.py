"""Finds a study that is named on the command line, by its file or by its results, and reads what it measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.results import launch_tables
from castmates.results.bundle_names import RecordReader
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.folder import RESULTS, StudyFolder
from castmates.results.named import default_study, studies_with
from castmates.results.plans import read_plan
from castmates.results.records import Record, read_json
from castmates.results.traces import traces_there
from castmates.study.model import Study
from castmates.study.reading import read_keys, value_of
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd

# What effects are made of.
NEEDED = [
    "platform",
    "cohort",
    "launch",
    "round",
    "scene",
    "member",
    "workload",
    "unit",
    "valid",
    "open_s",
    "rate",
    "started",
]


@dataclass(frozen=True)
class Measured:
    """What is on disk of one study."""

    folder: StudyFolder
    plan: Plan  # its measured launches only
    windows: "pd.DataFrame"  # the columns of NEEDED
    records: tuple[Record, ...]  # of these launches
    machine: Record
    study: Study | None  # where its file is known


def find(named: Path) -> tuple[StudyFolder, Path | None]:
    """The results folder, and the study file where it is known; either of the two may be named."""
    if named.is_dir():
        folder = _results(named)
        files = _files_of(named)
        return folder, files[0] if len(files) == 1 else None
    _refuse_missing(named)
    folder = StudyFolder.of(_study(named).name)
    if not folder.plan_file.is_file():
        there = "traces alone" if traces_there(folder) else "no results"
        raise CastmatesError(f"{named}: this study has {there} in {folder} yet; run `castmates sweep {named}`.")
    return folder, named


def find_traces(named: Path, or_sweep: bool = False) -> tuple[StudyFolder, Path | None]:
    """The same for what needs traces alone: `castmates trace record` makes them without a sweep, so without a plan.

    Where there is nothing at all, `or_sweep` asks for a sweep instead of a trace.
    """
    folder = StudyFolder(named) if named.is_dir() else StudyFolder.of(_study(named).name) if named.is_file() else None
    if folder is None or folder.plan_file.is_file():
        return find(named)
    if not traces_there(folder):
        if named.is_dir() or or_sweep:
            return find(named)
        raise CastmatesError(
            f"{named}: this study has no trace in {folder} yet; make one with `castmates trace record {named} MIX`."
        )
    if not named.is_dir():
        return folder, named
    files = _files_of(named)
    return folder, files[0] if len(files) == 1 else None


def study_file(named: Path) -> Path:
    """The file of a study, which is named by it or by its results folder."""
    if not named.is_dir():
        _refuse_missing(named)
        return named
    name, files = _results(named).path.resolve().name, _files_of(named)
    if len(files) != 1:
        who = f"the study files {' and '.join(map(str, files))} all have" if files else "no study file here has"
        raise CastmatesError(f"{named}: {who} the name '{name}'; give the study's own file.")
    if named.resolve() != (RESULTS / name).resolve():
        raise CastmatesError(f"{named}: the results of {files[0]} are in {RESULTS / name}; give one of these two.")
    return files[0]


def is_taken(name: str) -> bool:
    """Whether a study of this name is in the project, or results of one: another one must not measure into them."""
    folder = StudyFolder.of(name).path
    return folder.exists() or bool(_files_of(folder))


def read_measured(named: Path) -> Measured:
    """Everything that a comparison needs of a study."""
    folder, file = find(named)
    planned = read_plan(folder.plan_file)
    plan = folder.measured(planned)
    if not plan.launches:
        raise CastmatesError(f"{folder}: none of its {len(planned.launches)} planned launches is measured yet.")
    return Measured(
        folder=folder,
        plan=plan,
        windows=launch_tables.read(folder.places(plan), "windows", NEEDED),
        records=tuple(map(RecordReader(folder).read, map(folder.record_file, plan.launches))),
        machine=read_json(folder.machine_file),
        study=_study(file) if file else None,
    )


def _results(folder: Path) -> StudyFolder:
    results = StudyFolder(folder)
    if not results.plan_file.is_file():
        if traces_there(results):
            raise CastmatesError(f"{folder}: there are traces alone in it; run `castmates sweep STUDY` on its study.")
        if (folder / TRACE_RECORD).is_file():
            raise CastmatesError(f"{folder}: this is a single trace, of no study; `castmates trace query` asks it.")
        raise CastmatesError(f"{folder}: there is no plan.json in it; give a study file, or a folder results/<study>.")
    return results


def _refuse_missing(named: Path) -> None:
    if not named.exists() and named == default_study():
        raise CastmatesError(
            "there is no study in this folder (neither config/config.yaml nor study.yaml): write one with `castmates "
            "init`, or name a study file or a folder results/<study>."
        )
    if not named.exists():
        raise CastmatesError(
            f"{named}: there is neither a study file nor a results folder of this name; give a study file or "
            "results/<study>, or write a study with `castmates init`."
        )


def _files_of(folder: Path) -> list[Path]:
    """The study files of the project that have this folder's name."""
    name = folder.resolve().name
    # Reading YAML takes a while: only where the name is somewhere in it.
    return [file for file, text in studies_with(name) if value_of(text, "name") == name]


def _study(file: Path) -> Study:
    return read_keys(Study, written_text(file, "the study"), str(file))
