"""Reads what the looks at a study's precision left."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from castmates.files import AGAIN, mapping_of, understanding
from castmates.results.adaptive_looks import is_adaptive, read_adaptive_look
from castmates.results.folder import StudyFolder
from castmates.study.looks import reached_words, until_nobody_goes_on
from castmates.study.spec import Plan

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
