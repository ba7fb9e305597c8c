"""What others need to measure a study again, in its paper's folder: the study and its workloads, self-contained."""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.project import load
from castmates.report.paper.folder import Folder
from castmates.results.crate import STUDY, WORKLOADS
from castmates.study.replaying import catalogue_text, self_contained, workloads_of
from castmates.study.spec import Plan

HEAD = "Written by `castmates paper`: {what}, for `castmates sweep --replay`."


def write_for_replay(folder: Folder, plan: Plan, study_file: Path | None) -> str:
    """Write both; why there is nothing to write, "" where there is."""
    if study_file is None:
        return "the study's file is not known; name it instead of its results folder"
    try:
        project = load(study_file)
    except CastmatesError as problem:
        return str(problem)
    study = self_contained(project.study, plan).text(HEAD.format(what="the study as it was measured"))
    workloads = workloads_of(plan, project.workloads)
    catalogue = catalogue_text(workloads, HEAD.format(what="the workloads that the study names"))
    folder.text(STUDY, study, "The study as it was measured, to be measured again by `castmates sweep --replay`.")
    folder.text(WORKLOADS, catalogue, "The workloads of the study, each with its whole command.")
    return ""
