"""Control groups of version 2 whose CPUs belong to them alone and are not balanced (cpuset.cpus.partition=isolated)."""

from pathlib import Path

from castmates.linux import cgroups
from castmates.linux.kernel_files import read_text, write_kernel

CONTROLLER = "cpuset"
CPUS, PARTITION, EFFECTIVE = "cpuset.cpus", "cpuset.cpus.partition", "cpuset.cpus.effective"
ISOLATED, MEMBER = "isolated", "member"
ON, OFF = "on", "off"
HANDED_DOWN = "cgroup.subtree_control"


def lacking() -> str:
    """Why this machine has no such groups, in a clause; "" where the kernel has them, whoever may ask it."""
    places = cgroups.here(cgroups.unified)
    if not places:
        return "no control groups of version 2 are mounted here"
    return "" if any(has_controller(folder) for place in places for folder in (place, *place.parents)) else NOT_HERE


NOT_HERE = "the controller 'cpuset' is none of version 2's here (version 1 or a container has it)"


def has_controller(group: Path) -> bool:
    """Check whether the controller reaches a group."""
    return CONTROLLER in (read_text(group / "cgroup.controllers") or "").split()


def read_controller(path: Path) -> str:
    """Check whether a group hands the controller down to the groups in it; `path` is its cgroup.subtree_control."""
    return ON if CONTROLLER in path.read_text().split() else OFF


def write_controller(path: Path, state: str) -> None:
    """Hand the controller down, or no longer."""
    write_kernel(path, f"{'+' if state == ON else '-'}{CONTROLLER}")
