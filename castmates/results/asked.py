"""Launches beyond those that a study had: how many were asked for, and at how many its results were looked at before.

Both are kept with its results: all later commands plan with the number, and the looks make verdicts stricter.
"""

import json
from collections import Counter
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.study.rounds import MOST
from castmates.study.spec import Plan


def asked_launches(folder: StudyFolder) -> int:
    """The number asked for last; 0 where none was asked for."""
    launches = read_json(folder.asked_file).get("launches", 0)
    if not isinstance(launches, int) or not 0 <= launches <= MOST:
        raise CastmatesError(
            f"{folder.asked_file}: 'launches' is {str(launches)[:20]}, but expected a whole number up to {MOST}; "
            "correct or remove it."
        )
    return launches


def looks_before(folder: StudyFolder) -> tuple[int, ...]:
    """How many launches there were each time when results were there and more launches were added to them."""
    looks = read_json(folder.asked_file).get("looks")
    return tuple(look for look in looks if isinstance(look, int)) if isinstance(looks, list) else ()


def remember_launches(folder: StudyFolder, launches: int) -> None:
    """Keep the number that is asked for now."""
    if asked_launches(folder) != launches:
        _keep(folder, launches=launches)


def remember_look(folder: StudyFolder, before: Plan, now: Plan) -> None:
    """Keep that results were there, where the plan is to have more launches of a cohort than the last one had.

    A plan with a precision has all launches that it may need, so its own looks are no such extension.
    """
    had, wanted = _launches(before), _launches(now)
    more = [cohort for cohort in had if wanted[cohort] > had[cohort]]
    if not more or not folder.table_file("effects").is_file():
        return
    look, looks = max(had[cohort] for cohort in more), looks_before(folder)
    if look not in looks:
        _keep(folder, looks=[*looks, look])


def profile_looks_before(folder: StudyFolder) -> tuple[int, ...]:
    """The same of profile launches, when the tables of operations were there."""
    looks = read_json(folder.asked_file).get("profile_looks")
    return tuple(look for look in looks if isinstance(look, int)) if isinstance(looks, list) else ()


def remember_profile_look(folder: StudyFolder, now: int) -> None:
    """Keep how many profile launches of a lead have results now; where it had fewer before, that was a look.

    The tables do not show it: Snakemake removes them before they are made again.
    """
    had, looks = read_json(folder.asked_file).get("profile_launches"), profile_looks_before(folder)
    if isinstance(had, int) and 0 < had < now and had not in looks:
        looks = (*looks, had)
    if had != now:
        _keep(folder, profile_launches=now, profile_looks=list(looks))


def _launches(plan: Plan) -> Counter[str]:
    return Counter(launch.cohort.id for launch in plan.launches)


def _keep(folder: StudyFolder, **changes: Any) -> None:  # noqa: ANN401 (what JSON can hold)
    replace_text(folder.asked_file, json.dumps({**read_json(folder.asked_file), **changes}) + "\n")
