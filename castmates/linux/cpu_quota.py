"""Bounds the CPU time of control groups, and reads how often the kernel held them back for it.

Version 2 has `cpu.max`, where the controller is handed down to the group; version 1 has `cpu.cfs_quota_us` in a
hierarchy that it is mounted for.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.linux import cgroups
from castmates.linux.kernel_files import read_text, write_kernel

CONTROLLER = "cpu"
LEAST_US = 1000  # the kernel gives no less in a period
ON, OFF = "on", "off"
NONE = "max"
HANDED_DOWN = "cgroup.subtree_control"
OF_VERSION_1 = "cpu.cfs_quota_us"
GRANT = "`sudo castmates doctor --grant` gives it"
AS_ROOT = "let root run the sweep"


@dataclass(frozen=True, slots=True)
class Throttling:
    """What the kernel counted of a group since it was made."""

    periods: int  # in which somebody wanted to run
    throttled: int  # of them, in which nothing was left
    seconds: float  # that somebody waited for the next period, over all CPUs


def lacking() -> str:
    """Why this process cannot bound the CPU time of what it starts, in a clause; "" where it can."""
    if places := cgroups.here(cgroups.cpu_of_version_1):
        return _lacking_in_version_1(places)
    reasons = [obstacle(place) for place in _candidates()]
    if not reasons:
        return "no control groups are mounted here"
    if all(reasons):
        return reasons[0]
    return "" if find_home() else "the control groups here refuse to stop processes"


def find_home() -> Path | None:
    """Find a group of version 2 in which ours can be made, and to which the controller can be handed down.

    The kernel hands none down from a group that has processes. So where a login has put us into a group, as systemd
    does, the next one above it is taken that has none.
    """
    return next((place for place in _candidates() if not obstacle(place) and cgroups.works(place)), None)


def _candidates() -> list[Path]:
    """Our group of version 2 and all above it, as far as they are shown here."""
    places = cgroups.here(cgroups.unified)
    return _from_the_top(places[0])[::-1] if places else []


def _lacking_in_version_1(places: Sequence[Path]) -> str:
    if not any((place / OF_VERSION_1).exists() for place in places):
        return f"this kernel's control groups have no {OF_VERSION_1} ({places[0]})"
    if not any(os.access(place, os.W_OK) for place in places):
        return f"this user may make no group in {places[0]}, where version 1 has the controller '{CONTROLLER}'; {GRANT}"
    return ""


def obstacle(home: Path) -> str:
    """Why the controller cannot be handed down to groups in this one of version 2, in a clause; "" where it can."""
    chain = _from_the_top(home)
    if not chain or CONTROLLER not in (read_text(chain[0] / "cgroup.controllers") or "").split():
        return f"the controller '{CONTROLLER}' is not in {(chain or [home])[0] / 'cgroup.controllers'}"
    if not os.access(home, os.W_OK):
        return f"this user may make no group in {home}; {AS_ROOT}"
    for file in still_to_hand_down(home):
        if not os.access(file, os.W_OK):
            return f"the controller '{CONTROLLER}' is not in {file}, which this user may not write; {AS_ROOT}"
    # Check for processes in the group itself; the topmost one of a machine may have some.
    if (home / "cgroup.type").exists() and bool(read_text(home / cgroups.PROCESSES)):
        return f"the kernel hands no controller down in {home}, because processes are in it; {AS_ROOT}"
    return ""


def still_to_hand_down(home: Path) -> list[Path]:
    """List the files that have to name the controller before it reaches groups in `home`, from the top."""
    files = [folder / HANDED_DOWN for folder in _from_the_top(home)]
    return [file for file in files if CONTROLLER not in (read_text(file) or "").split()]


def read_controller(path: Path) -> str:
    """Check whether a group hands the controller down to the groups in it; `path` is its cgroup.subtree_control."""
    return ON if CONTROLLER in path.read_text().split() else OFF


def write_controller(path: Path, state: str) -> None:
    """Hand the controller down, or no longer."""
    write_kernel(path, f"{'+' if state == ON else '-'}{CONTROLLER}")


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


def throttling(group: Path) -> Throttling | None:
    """Read what was counted; None where that cannot be read."""
    lines = [line.split() for line in (read_text(group / "cpu.stat") or "").splitlines()]
    counts = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
    if "nr_throttled" not in counts:
        return None
    seconds = counts["throttled_usec"] / 1e6 if "throttled_usec" in counts else counts.get("throttled_time", 0) / 1e9
    return Throttling(counts.get("nr_periods", 0), counts["nr_throttled"], seconds)


def _from_the_top(group: Path) -> list[Path]:
    """Return the groups above this one as far as they are shown here, the topmost first, and the group itself."""
    return [folder for folder in (*reversed(group.parents), group) if (folder / HANDED_DOWN).exists()]


# Weighs control groups against each other and against processes beside them, in either version of the controller.

# The file, the weight of a process that is in no group, and the most.
_FILES = (("cpu.weight", 100, 10_000), ("cpu.shares", 1024, 262_144))


def weigh(cpus: Mapping[Path, int]) -> None:
    """Let each of these groups count on each of so many CPUs as a process does that is in no group.

    The kernel divides a group's weight among the CPUs that it is busy on. With the weight that it begins with, a group
    on eight CPUs would have an eighth of a process's share of each. The proportions hold where there are too many CPUs
    for the largest weight that the kernel takes. Groups that the controller does not reach are left out.
    """
    for file, usual, most in _FILES:
        here = {group: count for group, count in cpus.items() if (group / file).exists()}
        one = min(usual, most // max(here.values(), default=1))
        for group, count in here.items():
            write_kernel(group / file, str(one * count))
