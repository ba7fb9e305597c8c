"""Bounds the CPU time of control groups, and reads how often the kernel held them back for it.

Version 2 has `cpu.max`, where the controller is handed down to the group; version 1 has `cpu.cfs_quota_us` in a
hierarchy that it is mounted for.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.linux import cgroups
from castmates.linux.group_folder import OWN
from castmates.linux.kernel_files import read_text, write_kernel

CONTROLLER = "cpu"
LEAST_US = 1000  # the kernel gives no less in a period
ON, OFF = "on", "off"
NONE = "max"
HANDED_DOWN = "cgroup.subtree_control"
OF_VERSION_1 = "cpu.cfs_quota_us"
# The kernel hands these down also from a group that has processes, as long as nobody is in the groups inside it.
THREADED = {CONTROLLER, "cpuset", "perf_event", "pids"}
GRANT = "`sudo castmates grant` gives it"


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
    home = cgroups.find_home()
    if home is None:
        return f"there is no control group in which this user may stop and bound processes; {GRANT}"
    return obstacle(home)


def _lacking_in_version_1(places: Sequence[Path]) -> str:
    if not any((place / OF_VERSION_1).exists() for place in places):
        return f"this kernel's control groups have no {OF_VERSION_1} ({places[0]})"
    if not any(os.access(place, os.W_OK) for place in places):
        return f"this user may make no group in {places[0]}, where version 1 has the controller '{CONTROLLER}'; {GRANT}"
    return ""


def obstacle(home: Path) -> str:
    """Why the controller cannot be handed down to groups in this one of version 2, in a clause; "" where it can."""
    chain = _from_the_top(home)
    if not chain or not _has_controller(chain[0]):
        return f"the controller '{CONTROLLER}' is not in {(chain or [home])[0] / 'cgroup.controllers'}"
    for file in still_to_hand_down(home):
        if not os.access(file, os.W_OK):
            return f"the controller '{CONTROLLER}' is not in {file}, which this user may not write; {GRANT}"
        if _keeps_to_itself(file.parent):
            return (
                f"the kernel hands no controller down in {file.parent}, which holds processes and other groups; start "
                "the sweep in a group of its own, such as `sudo systemd-run --scope -p Delegate=yes` makes"
            )
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


def _has_controller(group: Path) -> bool:
    return CONTROLLER in (read_text(group / "cgroup.controllers") or "").split()


def _from_the_top(group: Path) -> list[Path]:
    """Return the groups above this one as far as they are shown here, the topmost first, and the group itself."""
    return [folder for folder in (*reversed(group.parents), group) if (folder / HANDED_DOWN).exists()]


def _keeps_to_itself(group: Path) -> bool:
    """Check whether the kernel would refuse to hand the controller down, because of the processes in the group.

    Groups of ours inside it do not count: they come and go, and are made after the controller was handed down.
    """
    if not (group / "cgroup.type").exists() or not (read_text(group / cgroups.PROCESSES) or ""):
        return False  # the topmost group of a machine, or nobody is in it
    handed_down = {*(read_text(group / HANDED_DOWN) or "").split()}
    others = [path for path in group.iterdir() if path.is_dir() and not path.name.startswith(f"{OWN}.")]
    return bool(handed_down - THREADED) or any(cgroups.is_populated(each) for each in others)
