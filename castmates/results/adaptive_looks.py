"""Reads what the looks of an adaptive study decided, and fills in what its launches leave out by that."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import AGAIN, mapping_if_there, mapping_of, understanding
from castmates.results.folder import StudyFolder
from castmates.study.adaptive import look_before, skipped_at
from castmates.study.decisions import with_skipped
from castmates.study.plan_text import Task
from castmates.study.spec import Launch, Plan

CELLS = "cells"  # what a look at mixes has, and one at the precision has not
WORDS = ("mix", "partition", "answer", "added", "why", "is_news")
KINDS = {"identity": str, "launches": int, "answered_after": int, "clear": bool, "goes_on": bool}
Look = Mapping[str, Any]  # look; cohorts that go on; cells: of each mix that was asked for what is known and decided


def is_adaptive(file: Path) -> bool:
    """Whether this is a look of an adaptive study; whoever reads it as the other kind reports what is wrong with it."""
    return CELLS in mapping_if_there(file)


def read_adaptive_look(file: Path) -> Look:
    """What one look decided."""
    with understanding(file, "what a look leaves", AGAIN):
        look = mapping_of(file)
        cells = [{key: cell[key] for key in (*KINDS, *WORDS)} | cell for cell in look[CELLS]]
        if not all(type(cell[key]) is kind for cell in cells for key, kind in KINDS.items()):
            raise TypeError
        numbers = {key: int(look[key]) for key in ("look", "full_windows")}
        return {**numbers, "cohorts": list(look["cohorts"]), CELLS: cells}


def read_adaptive_looks(plan: Plan, folder: StudyFolder) -> list[Look]:
    """The looks that were taken, in their order, up to the one after which nothing went on."""
    looks: list[Look] = []
    for number in range(1, len(plan.looks) + 1):
        if not (file := folder.look_file(number)).is_file():
            break
        if not is_adaptive(file):
            break
        looks.append(read_adaptive_look(file))
        if not looks[-1]["cohorts"]:
            break
    return looks


def going_on(look: Look) -> list[str]:
    """Identities of the mixes that go on after a look."""
    return [cell["identity"] for cell in look[CELLS] if cell["goes_on"]]


def as_decided(plan: Plan, folder: StudyFolder) -> Plan:
    """The plan with the mixes that launches leave out, as far as looks decided that; a measured one keeps its own."""
    if not plan.later and not any(launch.design.adaptive for launch in plan.launches):
        return plan
    looks = [frozenset(going_on(look)) for look in read_adaptive_looks(plan, folder)]
    number_of = {path: number for number, added in enumerate(plan.looks) for path in added}

    def skipped(launch: Launch) -> tuple[str, ...]:
        number = number_of.get(launch.path, 0)
        if launch.skipped or number > len(looks):
            return launch.skipped
        return skipped_at(launch.cohort, looks[number - 1] if number else None, plan.later)

    return with_skipped(plan, skipped)


def decided_task(task: Task, looks: Sequence[Collection[str]], later: Collection[str], folder: StudyFolder) -> Task:
    """A launch with the mixes that it leaves out; refused where its look has not been taken."""
    launch = task.launch
    number = look_before(launch.path, looks)
    file = folder.look_file(number)
    if number and not file.is_file():
        raise CastmatesError(
            f"what the launch '{launch.path}' measures is decided by look {number} of the study, which has not been "
            "taken: run the sweep."
        )
    measured = going_on(read_adaptive_look(file)) if number else None
    skipped = skipped_at(launch.cohort, measured, later)
    if len(skipped) == len(launch.cohort.mixes):
        raise CastmatesError(
            f"look {number} of the study lets no mix of the launch '{launch.path}' go on: there is nothing to measure."
        )
    return task._replace(launch=launch.model_copy(update={"skipped": skipped}))
