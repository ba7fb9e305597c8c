"""Reads the plan of a study as a rule wrote it, and what is still true of it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from castmates.errors import CastmatesError
from castmates.files import ODD, Unreadable, bytes_of, mapping_of, understanding, why
from castmates.results.folder import StudyFolder
from castmates.results.looks import as_decided, decided_rounds, decided_task
from castmates.study.cache import Cache
from castmates.study.model import Study
from castmates.study.plan_text import Task, looks_of, plan_of, task_of, trace_task_of
from castmates.study.rounds import Spread, with_decisions, with_rounds
from castmates.study.spec import Drawn, Plan

Made = TypeVar("Made")


def read_plan(file: Path) -> Plan:
    """The plan as a rule wrote it, with what was decided since then: rounds, and mixes that launches leave out."""
    plan, folder = _written(file, plan_of), StudyFolder(file.parent)
    return as_decided(with_decisions(plan, decided_rounds(folder)), folder)


def read_task(file: Path, path: str) -> Task | None:
    """One launch of the plan, with the rounds that were decided; None where the plan has no such launch.

    Every launch comes here: the others, which may be thousands, are not made.
    """
    task = _written(file, lambda text: task_of(text, path))
    if task is not None and task.launch.design.adaptive:
        task = decided_task(task, *_written(file, looks_of), StudyFolder(file.parent))
    if task is None or not task.launch.design.decided:
        return task
    launch = task.launch
    rounds = decided_rounds(StudyFolder(file.parent)).get(launch.cohort.id, launch.design.rounds)
    return task._replace(launch=with_rounds(launch, rounds))


def read_profile_task(file: Path, path: str) -> Task | None:
    """One profile launch of the plan; None where the plan has no such launch."""
    return _written(file, lambda text: task_of(text, path, "profiles"))


def read_trace_task(file: Path, name: str) -> Task | None:
    """The launch of the plan that makes the trace of this name; None where the plan has none."""
    return _written(file, lambda text: trace_task_of(text, name))


def last_plan(file: Path) -> Plan | None:
    """The plan that is about to be replaced; None where there is none, or none that this version can read."""
    try:
        return _written(file, plan_of)
    except CastmatesError:
        return None


def _written(file: Path, read: Callable[[bytes], Made]) -> Made:
    try:
        return read(bytes_of(file))
    except FileNotFoundError:
        raise CastmatesError(f"{file}: there is no plan yet; run the study's sweep first.") from None
    except (OSError, Unreadable, UnicodeDecodeError) as problem:
        raise CastmatesError(f"{file}: the plan cannot be read: {why(problem)}.") from None
    except ValidationError as problem:
        if any(error["loc"] == ("study",) for error in problem.errors()):
            raise _no_plan(file, problem) from None
        raise CastmatesError(
            f"{file}: this plan was written by another version of Castmates ({_first_of(problem)}); read these results "
            "with that version, or let a sweep plan anew, which keeps what is still wanted."
        ) from None
    except ODD as problem:
        raise _no_plan(file, problem) from None


def _no_plan(file: Path, problem: Exception) -> CastmatesError:
    return CastmatesError(f"{file}: this is not a plan ({why(problem)}); remove it, and run the sweep again.")


def _first_of(problem: ValidationError) -> str:
    """The first thing that is not as it is planned now: where it stands, and what is wrong with it."""
    first = problem.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def analysed(plan: Plan, folder: StudyFolder) -> Plan:
    """The plan without the launches that its looks at the precision left out."""
    return folder.measured(plan) if plan.looks else plan


def remembered_cache(plan_file: Path) -> Cache | None:
    """What could be shared out when a study was planned last; None where that is not known."""
    try:
        return Cache.model_validate(mapping_of(plan_file)["cache"])
    except (OSError, ValueError, KeyError):
        return None


def remembered_draw(plan_file: Path) -> Drawn | None:
    """The random mixes that were drawn when a study was planned last; None where none were."""
    try:
        return Drawn.model_validate(mapping_of(plan_file)["drawn"])
    except (OSError, ValueError, KeyError):
        return None


# What the pilot of a study left: in a folder beside the study's.


def pilot_name(study: Study) -> str:
    """The name of the pilot as a study."""
    return f"{study.name}-pilot"


def pilot_folder(study: Study) -> StudyFolder:
    """Where the pilot of this study has its launches and its proposal."""
    return StudyFolder.of(pilot_name(study))


def with_rounds_of_pilot(study: Study, study_file: Path) -> Study:
    """The study with a number of rounds in place of `pilot`."""
    if study.budget.rounds != "pilot":
        return study
    file = pilot_folder(study).pilot_file
    if not file.exists():
        raise CastmatesError(
            f"{study_file}: 'budget.rounds' is pilot, but there is no {file}; run `castmates plan {study_file} "
            f"--pilot`, or "
            "write a number of rounds."
        )
    with understanding(file, "what a pilot leaves", f"run `castmates plan {study_file} --pilot` again"):
        rounds = int(mapping_of(file)["rounds"])
    return study.model_copy(update={"budget": study.budget.model_copy(update={"rounds": rounds})})


def read_spreads(study: Study) -> dict[str, Spread]:
    """What the pilot found of the spread of each mix, by the mixes' identities; nothing where there was none."""
    file = pilot_folder(study).pilot_file
    if not file.is_file():
        return {}
    with understanding(file, "what a pilot leaves", "run `castmates plan --pilot` again"):
        return {identity: Spread(**spread) for identity, spread in mapping_of(file)["mixes"].items()}
