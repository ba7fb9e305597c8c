"""What is known of the nodes of a cluster: what launches leave on them, so that the next attempt gets another one.

Notes are written by jobs and read by the process that submits them; a sweep begins without notes.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError
from castmates.files import make_folder, replace_text
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.study.rounds import MOST
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


def node_here(environment: Mapping[str, str] = os.environ) -> str:
    """What Slurm calls this node; "" outside its jobs."""
    return environment.get("SLURMD_NODENAME", "")


def note_attempt(folder: StudyFolder, launch: str, node: str) -> None:
    """Note that this launch was begun on this node."""
    file = folder.for_jobs / "begun" / launch
    replace_text(file, "".join(f"{each}\n" for each in [*begun_on(folder, launch), node]))


def begun_on(folder: StudyFolder, launch: str) -> list[str]:
    """The nodes that this launch was begun on, the latest last."""
    try:
        return (folder.for_jobs / "begun" / launch).read_text().split()
    except OSError:
        return []


def note_refusal(folder: StudyFolder, machine: str, node: str) -> None:
    """Note that this node is not of this class."""
    place = folder.for_jobs / "refused" / machine
    make_folder(place)
    (place / node).touch()


def refused_by(folder: StudyFolder, machine: str) -> list[str]:
    """The nodes that are not of this class."""
    try:
        return sorted(each.name for each in (folder.for_jobs / "refused" / machine).iterdir())
    except OSError:
        return []


def forget(folder: StudyFolder) -> None:
    """Begin without notes: a node may have changed, and an attempt of an earlier sweep does not count here."""
    for name in ("begun", "refused"):
        shutil.rmtree(folder.for_jobs / name, ignore_errors=True)


# The facts of the nodes that measured a part of a study, such as a class of nodes.

Facts = Mapping[str, Any]


def facts_of_nodes(folder: StudyFolder, part: "Plan", windows: "pd.DataFrame", machine: Facts) -> list[Facts]:
    """By node, the one with the most launches of this part first; `machine` is what machine.json has.

    A node of which nothing is known has no facts. A modelled class has those of its model.
    """
    if part.machine in (modelled := machine.get("classes", {})):
        return [modelled[part.machine]]
    return [
        machine if host == machine.get("hostname") else read_json(folder.node_file(host))
        for host in _hosts(part, windows)
    ]


def _hosts(part: "Plan", windows: "pd.DataFrame") -> list[str]:
    """Who measured launches of this part."""
    import pandas as pd

    places = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in part.launches])
    launches = windows.loc[windows["host"] != "", ["cohort", "launch", "host"]].drop_duplicates()
    counts = launches.loc[pd.MultiIndex.from_frame(launches[["cohort", "launch"]]).isin(places), "host"].value_counts()
    return sorted(map(str, counts.index), key=lambda host: (-int(counts[host]), host))


# Launches beyond those that a study had: how many were asked for, and at how many its results were looked at before.
#
# Both are kept with its results: all later commands plan with the number, and the looks make verdicts stricter.


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
