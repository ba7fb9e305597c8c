"""What is known of the nodes of a cluster: what launches leave on them, so that the next attempt gets another one.

Notes are written by jobs and read by the process that submits them; a sweep begins without notes.
"""

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from castmates.files import make_folder, replace_text
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
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
