"""Reads what the looks at a study's precision left."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import AGAIN, mapping_if_there, mapping_of, understanding
from castmates.results.folder import StudyFolder
from castmates.study.curves import look_before, skipped_at
from castmates.study.plan_text import Task
from castmates.study.rounds import Decision, reached_words, until_nobody_goes_on, with_skipped
from castmates.study.spec import PROTOCOL, Launch, Plan

Look = Mapping[str, Any]  # wanted_pct; reached: for each cohort how precise it is, and whether it goes on


REACHED = ("cohort", "launches", "half_width_pct", "enough", "goes_on")


def read_looks(plan: Plan, folder: StudyFolder) -> list[Look]:
    """The looks that were taken, in their order, up to the one after which no cohort went on."""
    return until_nobody_goes_on(_there(plan, folder))


def went_on(file: Path) -> list[str]:
    """The cohorts that went on after this look."""
    if is_adaptive(file):
        return list(read_adaptive_look(file)["cohorts"])
    return [reached["cohort"] for reached in read_look(file)["reached"] if reached["goes_on"]]


def precision_words(plan: Plan, folder: StudyFolder, wanted: float | None) -> str:
    """Whether this precision was reached, by the looks that were taken; "" where it was not looked for."""
    if wanted is None:
        return ""
    looks = read_looks(plan, folder)
    return reached_words(looks if all(look["wanted_pct"] == percent(wanted) for look in looks) else [])


def percent(share: float) -> float:
    """A wanted precision as looks have it: in per cent, without the last digits of binary fractions."""
    return round(100 * share, 9)


def read_look(file: Path) -> Look:
    """What one look left."""
    with understanding(file, "what a look leaves", AGAIN):
        look = mapping_of(file)
        reached = [{key: cohort[key] for key in REACHED} for cohort in look["reached"]]
        return {"wanted_pct": float(look["wanted_pct"]), "reached": reached}


def _there(plan: Plan, folder: StudyFolder) -> Iterator[Look]:
    for number in range(1, len(plan.looks) + 1):
        if not (file := folder.look_file(number)).is_file() or is_adaptive(file):
            return
        yield read_look(file)


# What the looks of an adaptive study decided, and what its launches leave out by that.

CELLS = "cells"  # what a look at mixes has, and one at the precision has not
WORDS = ("mix", "partition", "answer", "added", "why", "is_news")
KINDS = {"identity": str, "launches": int, "answered_after": int, "clear": bool, "goes_on": bool}


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


# What was decided on the rounds of a study's cohorts.


def read_decisions(folder: StudyFolder) -> list[Decision]:
    """What was decided, cohort by cohort; what was decided for another way of measuring does not count."""
    return [decision for decision in _rounds_there(folder) if decision.protocol == PROTOCOL]


def decided_rounds(folder: StudyFolder) -> dict[str, int]:
    """The decided numbers, by cohort."""
    return {decision.cohort: decision.rounds for decision in read_decisions(folder)}


def _rounds_there(folder: StudyFolder) -> Iterator[Decision]:
    anybody = folder.rounds_file("*")
    for file in sorted(anybody.parent.glob(anybody.name)):
        yield _read(file)


def _read(file: Path) -> Decision:
    with understanding(file, "what decides on rounds", AGAIN):
        decision = Decision(**mapping_of(file))
        if decision.cohort != file.stem or not isinstance(decision.rounds, int) or decision.rounds < 1:
            raise ValueError("another cohort, or no rounds")
        return decision
