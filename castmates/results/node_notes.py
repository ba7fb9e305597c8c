"""What launches on a cluster leave on the nodes that they came to, so that the next attempt gets another one.

Written by jobs, read by the process that submits them; a sweep begins without notes.
"""

import os
import shutil
from collections.abc import Mapping

from castmates.files import make_folder, replace_text
from castmates.results.folder import StudyFolder


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
