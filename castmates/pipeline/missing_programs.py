"""Refuses a study of which a program is not there, before anything of it is measured."""

from castmates.errors import CastmatesError
from castmates.files import cache_folder, written_text
from castmates.project import ENVIRONMENTS, Project
from castmates.study.reading import line_of
from castmates.study.spec import Plan
from castmates.workloads.inputs import lack_of


def refuse_missing_programs(project: Project, plan: Plan) -> None:
    """Name the first command whose program is neither here nor in a package, with its place in the study.

    A program of a package is no slip of the pen: `castmates plan` shows how to install it. Nodes of a class have
    programs of their own.
    """
    if project.modelled or project.elsewhere or project.study.machines:
        return
    measured = set(project.results.measured_paths())
    members = (each for launch in plan.launches if launch.path not in measured for each in launch.cohort.members)
    file = str(project.study_file)
    for name in dict.fromkeys(member.workload for member in members):
        workload = project.workloads.get(name)
        if workload is None or workload.package or workload.environment or not workload.words:
            continue
        if lack := lack_of(workload, ENVIRONMENTS, cache_folder()):
            place = ""
            if name in project.study.workloads:
                place = f", line {line_of(written_text(project.study_file, 'the study'), file, ('workloads', name, 'command'))}"
            raise CastmatesError(f"{file}{place}: 'workloads.{name}.command': {lack.what.rstrip('?')}{_end(lack.what)}")


def _end(sentence: str) -> str:
    return "?" if sentence.endswith("?") else " here; correct it, or install it."
