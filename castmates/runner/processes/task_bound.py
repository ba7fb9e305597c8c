"""Bounds how many processes and threads a member may have, where there is a pids controller: a fork bomb ends there."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups

TASKS = 4096  # generous: what a member needs is a few times its CPUs


class TaskBound:
    """The bounds of a launch's members, by the controller of version 2 or else by groups of version 1."""

    def __init__(self, name: str) -> None:
        self._root: Path | None = None
        if home := cgroups.find_pids_home():
            with contextlib.suppress(CastmatesError):  # a plain user's
                self._root = cgroups.make(home, name)

    def adopt(self, group: Path, pids: Iterable[int]) -> None:
        """Bound a member that stands still in its group of version 2."""
        if cgroups.bound_tasks(group, TASKS) or self._root is None:
            return
        own = cgroups.make(self._root, group.name)
        cgroups.bound_tasks(own, TASKS)
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                cgroups.move(own, pid)

    def groups(self) -> list[Path]:
        """List what was made for this alone."""
        return [] if self._root is None else [self._root]

    def close(self) -> None:
        """Remove what was made; its processes must have ended."""
        if self._root is not None:
            cgroups.remove(self._root)


def bounding_group(pid: int) -> Path | None:
    """Find the group that bounds a member; None where nothing of ours does."""
    for place in (cgroups.unified, cgroups.pids_of_version_1):
        group = cgroups.group_of(pid, place)
        if group and group.parent.name.startswith("castmates.") and (group / "pids.events").exists():
            return group
    return None


def refusal(group: Path | None) -> str:
    """Return a sentence where a member wanted more than it may have, else ""."""
    if group is None or not cgroups.refused_tasks(group):
        return ""
    return f"wanted more than {TASKS} processes and threads at a time, as a fork bomb does"
