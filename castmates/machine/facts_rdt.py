"""What the kernel shows of Intel RDT, AMD QoS and Arm MPAM, without changing anything."""

import os
from pathlib import Path
from typing import Any

from castmates.linux import host
from castmates.linux.kernel_files import below, mounts, read_text
from castmates.linux.owned_names import delegated_to
from castmates.machine.resctrl_state import CLUSTER, NO_GROUPS

RDT_FLAGS = (
    "rdt_a",
    "cat_l3",
    "cdp_l3",
    "mba",
    "cqm",
    "cqm_llc",
    "cqm_occup_llc",
    "cqm_mbm_total",
    "cqm_mbm_local",
    "cat_l2",
    "cdp_l2",
)


def rdt_flags(root: Path) -> list[str] | None:
    """Return the processor's RDT flags; None where /proc/cpuinfo has no x86 flags."""
    flags = host.cpu_flags(root)
    return None if flags is None else [flag for flag in RDT_FLAGS if flag in flags]


def resctrl(root: Path) -> dict[str, Any]:
    """Return whether the kernel has resctrl, where it is mounted, whose groups are there, and its info/."""
    known = host.file_systems(root)
    facts: dict[str, Any] = {
        "kernel": None if known is None else "resctrl" in known,
        "mounted": None,
        "options": None,
        "writable": None,
        "delegated": None,
        "default_group": None,
        "default_class": None,
        "groups": None,
        "info": None,
        "clusters": None,
    }
    mount = next((mount for mount in mounts(root) if mount.fstype == "resctrl"), None)
    if mount is not None:
        here = below(root, mount.point)
        facts |= {
            "mounted": mount.point,
            "options": mount.options,
            "writable": os.access(here, os.W_OK | os.X_OK) and os.access(here / "schemata", os.W_OK),
            "delegated": _delegated(here),
            "default_group": os.access(here / "schemata", os.W_OK),
            "default_class": read_text(here / "schemata"),
            "groups": _folders(here, NO_GROUPS),
            "info": _info(here / "info"),
            "clusters": _clusters(here / "mon_data"),
        }
    return facts


def _delegated(here: Path) -> list[str]:
    """Name the groups that root gave to this user: whose tasks and masks it may write."""
    me = os.geteuid()
    return [
        name
        for name in _folders(here, NO_GROUPS) or []
        if delegated_to(name) == me and all(os.access(here / name / file, os.W_OK) for file in ("tasks", "schemata"))
    ]


def _folders(folder: Path, without: set[str]) -> list[str] | None:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name not in without)
    except OSError:
        return None


def _clusters(folder: Path) -> int | None:
    """Count the sub-NUMA clusters that are monitored in a last-level cache; None where nothing is monitored."""
    caches = _folders(folder, set()) or []
    parts = [_folders(folder / cache, set()) or [] for cache in caches[:1]]
    return sum(part.startswith(CLUSTER) for part in parts[0]) if parts else None


def _info(folder: Path) -> dict[str, dict[str, str | None]] | None:
    resources = _folders(folder, set())
    if resources is None:
        return None
    return {
        resource: {file.name: read_text(file) for file in sorted((folder / resource).iterdir()) if file.is_file()}
        for resource in resources
    }
