"""A published study -> the study that measures it again here, in the folder of its results."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.project import load
from castmates.results.find import Measured, find
from castmates.results.folder import StudyFolder
from castmates.results.published import Published, read_published, read_source
from castmates.results.records import read_json
from castmates.study.machine_keys import NodeFacts, difference, recorded
from castmates.study.model import Study, Workload
from castmates.study.reading import read_keys
from castmates.study.replaying import (
    LONGEST_NAME,
    ReplayedPart,
    catalogue_text,
    part_of,
    replaying,
    self_contained,
    workloads_of,
)
from castmates.study.spec import Plan
from castmates.study.written import Name

HEAD = "Written by `castmates sweep --replay`; the same command writes it again."


@dataclass(frozen=True)
class Asked:
    """What a user wants of a replay beside the study."""

    lead: str = ""
    launches: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Replay:
    """A replay that can be measured."""

    file: Path  # its study
    published: Measured  # what is measured again of the published study
    plan: Plan  # how it is measured here
    notes: tuple[str, ...]  # what is not as in the published study, and why


def prepare(published: Published, asked: Asked, facts_here: Callable[[], NodeFacts]) -> Replay:
    """Write the study that measures it again; refuse what cannot be measured here."""
    measured = read_published(published)
    source, workloads = _source(published, measured)
    part = _part(published, measured.plan, asked)
    ours = replace(_of_part(measured, part), study=source)
    keeps, notes = _keeps_cpus(source, measured, facts_here)
    study = replaying(source, measured.plan, part, asked.launches, keeps)
    if asked.name:
        study = study.model_copy(update={"name": _checked(asked.name)})
    file = _write(published, study, workloads)
    plan = load(file).plan()
    return Replay(file, ours, plan, notes)


def _checked(name: str) -> str:
    """A name that a folder of results can have."""
    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise CastmatesError(
            f"--name is '{name}', but a name is made of at most {LONGEST_NAME} lower-case letters, digits, '.', '_' "
            "and '-', and begins with a letter or a digit."
        ) from None


def _source(published: Published, measured: Measured) -> tuple[Study, Mapping[str, Workload]]:
    """The published study, and its workloads."""
    if published.is_crate:
        study, workloads = read_source(published)
    else:
        named = Path(published.named)
        file = named if named.is_file() and named.suffix in (".yaml", ".yml") else find(published.root)[1]
        if file is None:
            raise CastmatesError(
                f"{published.named}: no study file here has the name of these results, so what to measure is not "
                "known; name the study's file, or the folder that `castmates paper` writes with it."
            )
        project = load(file)
        study, workloads = self_contained(project.study, measured.plan), workloads_of(measured.plan, project.workloads)
    if study.machines:
        raise CastmatesError(
            f"{published.named}: the study has classes of nodes ({', '.join(study.machines)}), and a replay measures "
            "on one machine; publish a study of one class."
        )
    return study, workloads


def _part(published: Published, plan: Plan, asked: Asked) -> ReplayedPart:
    """What of it is measured again."""
    if published.launch:
        return _part_of_launch(published, plan, asked)
    leads = dict.fromkeys(each.lead.workload for each in plan.cohorts if _has_results(plan, each.id))
    if asked.lead and asked.lead not in leads:
        raise CastmatesError(
            f"--lead is '{asked.lead}', and {published.named} has no such lead (there are: {', '.join(leads)})."
        )
    return ReplayedPart(lead=asked.lead)


def _part_of_launch(published: Published, plan: Plan, asked: Asked) -> ReplayedPart:
    """The mixes of a launch's cohort, with as many rounds as that launch had."""
    if asked.lead:
        raise CastmatesError(f"--lead is for a whole study, and {published.named} has one lead; leave it out.")
    cohort, _, number = published.launch.partition("/")
    wanted = published.launch if number else ""
    launches = [each for each in plan.launches if each.cohort.id == cohort and wanted in ("", each.path)]
    if not launches:
        raise CastmatesError(f"{published.named}: this launch is not in the study's plan.")
    if not _has_results(plan, cohort):
        raise CastmatesError(
            f"{published.named}: this launch measured controls alone, which are no results of the study; replay the "
            "whole study."
        )
    return ReplayedPart(cohort=launches[0].cohort, rounds=launches[0].design.rounds if number else None)


def _has_results(plan: Plan, cohort: str) -> bool:
    """Whether anything but controls is in a cohort."""
    results = {mix.identity for mix in plan.mixes}
    return any(
        mix.identity in results for launch in plan.launches if launch.cohort.id == cohort for mix in launch.cohort.mixes
    )


def without_controls(measured: Measured) -> Measured:
    """The same without launches of controls alone."""
    return _of_part(measured, ReplayedPart())


def _of_part(measured: Measured, part: ReplayedPart) -> Measured:
    """What was measured of this part of the study."""
    plan = part_of(measured.plan, part)
    paths = {launch.path for launch in plan.launches}
    both = zip(measured.records, measured.plan.launches, strict=True)
    return replace(measured, plan=plan, records=tuple(record for record, launch in both if launch.path in paths))


def _keeps_cpus(study: Study, measured: Measured, facts_here: Callable[[], NodeFacts]) -> tuple[bool, tuple[str, ...]]:
    """Whether CPU lists of the study hold here, and what is done where they do not."""
    lists = [text for text in (study.placement.lead, study.placement.antagonists) if text]
    if study.platform == "modelled" or not lists:
        return True, ()
    there = recorded(measured.machine)
    why = "its topology was not recorded" if there is None else difference(there, facts_here())
    if not why:
        return True, ()
    return False, (
        f"The study's CPU lists ({', '.join(lists)}) belong to the published machine (here, {why}): the rules of "
        "placement choose CPUs here.",
    )


def _write(published: Published, study: Study, workloads: Mapping[str, Workload]) -> Path:
    """Write the study and its workloads, unless they are there already; another replay is never replaced."""
    folder = StudyFolder.of(study.name)
    origin = published.digest if published.is_crate else str(published.root.resolve())
    known = read_json(folder.replay_origin_file).get("published")
    if known != origin and folder.path.exists():
        what = "of something else" if known is None else "of another published study"
        raise CastmatesError(f"{folder} has results {what}; give the replay another name with --name.")
    file, text = folder.replay_study_file, study.text(HEAD)
    read_keys(Study, text, str(file))
    texts = {
        folder.replay_origin_file: json.dumps({"published": origin, "named": published.named}, indent=1) + "\n",
        file: text,
        folder.replay_workloads_file: catalogue_text(workloads, HEAD),
    }
    for place, content in texts.items():
        if not place.is_file() or place.read_text(encoding="utf-8") != content:
            replace_text(place, content)
    return file
