"""Refuses a study of which a program is not there, before anything of it is measured."""

import os

from castmates.errors import CastmatesError
from castmates.files import written_text
from castmates.project import Project
from castmates.study.reading import line_of
from castmates.study.spec import Plan
from castmates.workloads.identity import lack


def refuse_missing_programs(project: Project, plan: Plan) -> None:
    """Name the first command whose program is neither here nor in a package, with its place in the study.

    A program of a package is no slip of the pen: `castmates plan` shows how to install it, and whatever else is not
    there. Nodes of a class have programs of their own.
    """
    if project.modelled or project.elsewhere or project.study.machines:
        return
    measured = set(project.results.measured_paths())
    members = (each for launch in plan.launches if launch.path not in measured for each in launch.cohort.members)
    for name in dict.fromkeys(member.workload for member in members):
        workload = project.workloads.get(name)
        if workload is None or workload.package or workload.environment or not workload.words:
            continue
        if workload.words[0].startswith("{"):  # a place that a launch knows
            continue
        path = workload.variables.get("PATH", os.environ.get("PATH", os.defpath))
        if why := lack(workload.words, None, path):
            raise CastmatesError(f"{_place(project, name)}: 'workloads.{name}.command': {why}{_end(why)}")


def _place(project: Project, name: str) -> str:
    """File and line of its command; the file alone where the catalogue has it."""
    file = project.study_file
    if name not in project.study.workloads:
        return str(file)
    return f"{file}, line {line_of(written_text(file, 'the study'), str(file), ('workloads', name, 'command'))}"


def _end(sentence: str) -> str:
    return "" if sentence.endswith("?") else " here; correct it, or install it."
