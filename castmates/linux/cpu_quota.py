"""Bounds the CPU time of control groups, and reads how often the kernel held them back for it.

Version 2 has `cpu.max`, where the controller is handed down to the group; version 1 has `cpu.cfs_quota_us` in a
hierarchy that it is mounted for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.linux import cgroups
from castmates.linux.kernel_files import read_text, write_kernel

CONTROLLER = "cpu"
LEAST_US = 1000  # the kernel gives no less in a period
ON, OFF = "on", "off"
NONE = "max"
HANDED_DOWN = "cgroup.subtree_control"
# How groups are weighed against each other: the file, the weight of a process without a group, and the most.
_WEIGHTS = (("cpu.weight", 100, 10_000), ("cpu.shares", 1024, 262_144))


@dataclass(frozen=True, slots=True)
class Throttling:
    """What the kernel counted of a group since it was made."""

    periods: int  # in which somebody wanted to run
    throttled: int  # of them, in which nothing was left
    seconds: float  # that somebody waited for the next period, over all CPUs


def lacking() -> str:
    """Why CPU time cannot be bounded on this machine; "" where the kernel can, whoever may ask it."""
    if cgroups.here(cgroups.cpu_of_version_1) or any(_has_controller(place) for place in _above()):
        return ""
    return "no control groups with the controller 'cpu' are mounted here"


def read_controller(path: Path) -> str:
    """Check whether a group hands the controller down to the groups in it; `path` is its cgroup.subtree_control."""
    return ON if CONTROLLER in path.read_text().split() else OFF


def write_controller(path: Path, state: str) -> None:
    """Hand the controller down, or no longer."""
    write_kernel(path, f"{'+' if state == ON else '-'}{CONTROLLER}")


def can_hand_down(group: Path) -> bool:
    """Check whether the controller reaches a group of version 2."""
    return _has_controller(group)


def bound(group: Path, quota_us: int | None, period_us: int) -> None:
    """Bound the group to so much CPU time in each period, or no longer."""
    if (group / "cpu.max").exists():
        write_kernel(group / "cpu.max", f"{NONE if quota_us is None else quota_us} {period_us}")
        return
    write_kernel(group / "cpu.cfs_quota_us", "-1")  # the old one may be too much for the new period
    write_kernel(group / "cpu.cfs_period_us", str(period_us))
    if quota_us is not None:
        write_kernel(group / "cpu.cfs_quota_us", str(quota_us))


def bound_of(group: Path) -> str:
    """Return what is in force, in the words of cpu.max: `5000 10000`, `max 10000`; "" where it cannot be read."""
    if (words := read_text(group / "cpu.max")) is not None:
        return words
    quota, period = (read_text(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return "" if quota is None or period is None else f"{NONE if quota == '-1' else quota} {period}"


def weigh(cpus: Mapping[Path, int]) -> None:
    """Let each of these groups count on each of so many CPUs as a process does that is in no group.

    The kernel divides a group's weight among the CPUs that it is busy on. With the weight that it begins with, a group
    on eight CPUs would have an eighth of a process's share of each. The proportions hold where there are too many CPUs
    for the largest weight that the kernel takes.
    """
    for file, usual, most in _WEIGHTS:
        here = {group: count for group, count in cpus.items() if (group / file).exists()}
        one = min(usual, most // max(here.values(), default=1))
        for group, count in here.items():
            write_kernel(group / file, str(one * count))


def throttling(group: Path) -> Throttling | None:
    """Read what was counted; None where that cannot be read."""
    lines = [line.split() for line in (read_text(group / "cpu.stat") or "").splitlines()]
    counts = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
    if "nr_throttled" not in counts:
        return None
    seconds = counts["throttled_usec"] / 1e6 if "throttled_usec" in counts else counts.get("throttled_time", 0) / 1e9
    return Throttling(counts.get("nr_periods", 0), counts["nr_throttled"], seconds)


def _has_controller(group: Path) -> bool:
    return CONTROLLER in (read_text(group / "cgroup.controllers") or "").split()


def _above() -> list[Path]:
    """Our groups of version 2, and all above them: root can hand the controller down from there."""
    places = cgroups.here(cgroups.unified)
    return [folder for place in places for folder in (place, *place.parents)]
