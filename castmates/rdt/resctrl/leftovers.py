"""Removes the groups of resctrl that killed runs have left and no journal names."""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.capabilities import find_mount
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.tree import KernelTree, Tree


def remove_leftovers() -> tuple[list[str], list[str]]:
    """Remove them from the mounted resctrl; return in sentences what was removed and what could not be."""
    mount = find_mount()
    if mount is None:
        return [], []
    return remove_from(KernelTree(Path(mount.point)), Path(mount.point))


def remove_from(tree: Tree, point: Path) -> tuple[list[str], list[str]]:
    """Remove them from one resctrl."""
    done, left = [], []
    try:
        stale = groups.stale(tree)
    except OSError as error:
        return [], [f"{point}: cannot be searched for groups of killed runs ({error.strerror})"]
    for path in stale:
        try:
            groups.remove(tree, ResctrlJournal(None, point, ""), path)
            done.append(f"{point / path}: left by a killed run, removed")
        except CastmatesError as error:
            left.append(str(error))
    return done, left
