"""Control groups: find a place where groups may be made, and freeze, thaw, bound and kill what is in them.

Freezing and events are version 2's. Of version 1 only the pids controller is used, on machines that have it there.
"""

import contextlib
import errno
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from castmates.errors import CastmatesError
from castmates.linux.kernel_files import below, mounts, mounts_in, read_kernel, read_text, write_kernel
from castmates.linux.marks import in_child
from castmates.linux.owner import group_name
from castmates.linux.processes import send

PROCESSES = "cgroup.procs"  # the file of a group that lists who is in it, and moves whom it is given
THREADS = "cgroup.threads"
# What a user must own of a group to whom it is given: the group itself, and these files in it.
DELEGATED = ("", PROCESSES, THREADS, "cgroup.subtree_control")


def find_home() -> Path | None:
    """Find a cgroup2 directory in which this process may really make, fill, freeze and kill a group."""
    return next(filter(works, here(unified)), None)


def find_pids_home() -> Path | None:
    """Find a directory of version 1's pids controller in which this process may make a group."""
    return next((place for place in here(pids_of_version_1) if os.access(place, os.W_OK)), None)


def candidates(mountinfo: str, own_groups: str) -> list[Path]:
    """List where our groups may be, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    places = (unified, pids_of_version_1, cpu_of_version_1)
    return list(dict.fromkeys(path for place in places for path in place(mountinfo, own_groups)))


def unified(mountinfo: str, own_groups: str) -> list[Path]:
    """List where groups of version 2 might be made, ours first."""
    return _places(mountinfo, own_groups, "cgroup2", "")


def pids_of_version_1(mountinfo: str, own_groups: str) -> list[Path]:
    """List where groups of version 1's pids controller might be made, ours first."""
    return _places(mountinfo, own_groups, "cgroup", "pids")


def cpu_of_version_1(mountinfo: str, own_groups: str) -> list[Path]:
    """List where groups of version 1's cpu controller might be made, ours first."""
    return _places(mountinfo, own_groups, "cgroup", "cpu")


def everywhere() -> list[Path]:
    """List where groups of this process may be, in both versions."""
    return here(candidates)


def memberships(process: int | str = "self", root: Path = Path("/")) -> dict[str, str]:
    """Return the path of a process's group for each controller of version 1, and under "" that of version 2."""
    paths: dict[str, str] = {}
    for line in (read_text(root / f"proc/{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def layout(root: Path = Path("/")) -> tuple[str | None, Path | None]:
    """Return which versions are mounted (v1, v2, hybrid) and the folder of our own group of version 2."""
    mounted = list(mounts(root))
    first = any(mount.fstype == "cgroup" for mount in mounted)
    second = next((mount for mount in mounted if mount.fstype == "cgroup2"), None)
    own = memberships(root=root).get("")
    name = {(True, True): "hybrid", (True, False): "v1", (False, True): "v2"}.get((first, second is not None))
    if second is None or own is None:
        return name, None
    # Without a cgroup namespace a container mounts a subtree, and our path counts from the host's root.
    inside = own.removeprefix(second.subtree) if second.subtree != "/" else own
    folder = below(root, second.point) / inside.lstrip("/")
    return name, folder if folder.is_dir() and ".." not in folder.parts else None


def group_of(pid: int, place: Callable[[str, str], list[Path]]) -> Path | None:
    """Find the group of a process in one of the two kinds of places; None where it has ended or has none there."""
    with contextlib.suppress(OSError):
        places = place(Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid}/cgroup").read_text())
        return next(iter(places), None)
    return None


def make(parent: Path, name: str) -> Path:
    """Make a group; a slash in its name becomes a hyphen."""
    group = parent / name.replace("/", "-")
    try:
        group.mkdir()
    except OSError as error:
        raise CastmatesError(f"the control group {group} cannot be made: {error.strerror}") from None
    return group


def remove(group: Path) -> None:
    """Remove a group and the groups in it; all must be empty of processes; nothing happens where there is none."""
    if group.is_dir():
        for inner in [entry for entry in group.iterdir() if entry.is_dir() and not entry.is_symlink()]:
            remove(inner)
        with contextlib.suppress(FileNotFoundError):
            group.rmdir()


def move(group: Path, pid: int) -> None:
    """Move a process with all its threads into a group; ProcessLookupError where it has ended."""
    write_kernel(group / PROCESSES, str(pid))


def processes(group: Path) -> list[int]:
    """List the processes in a group and in the groups inside it; one outside our PID namespace is a 0."""
    return _listed(group, PROCESSES)


def threads(group: Path) -> list[int]:
    """List the threads in a group and in the groups inside it, those in our PID namespace."""
    return [tid for tid in _listed(group, THREADS) if tid]


def _listed(group: Path, file: str) -> list[int]:
    numbers: list[int] = []
    for folder in [group, *(Path(path) for path, _, _ in os.walk(group) if Path(path) != group)]:
        with contextlib.suppress(OSError):
            numbers += [int(number) for number in (folder / file).read_text().split()]
    return numbers


def event(group: Path, key: str) -> bool:
    """Read one flag of cgroup.events: "frozen" or "populated"."""
    return f"{key} 1" in (group / "cgroup.events").read_text().splitlines()


def ask(group: Path, frozen: bool) -> None:
    """Ask the kernel to freeze or thaw a group; it thaws at once, and needs a moment to freeze."""
    write_kernel(group / "cgroup.freeze", "1" if frozen else "0")


def freeze(group: Path, frozen: bool, timeout_s: float) -> bool:
    """Freeze or thaw a group and return whether it came true within the time."""
    ask(group, frozen)
    return wait(group, "frozen", frozen, timeout_s)


def kill(group: Path, timeout_s: float) -> bool:
    """Kill everything in a group, frozen or not, and return whether it was empty within the time.

    A group with a process outside our PID namespace is not ours: no process there is killed.
    """
    if not is_populated(group):
        return True
    if has_strangers(group):
        return False
    try:
        write_kernel(group / "cgroup.kill", "1")
        return wait(group, "populated", False, timeout_s)
    except FileNotFoundError:  # version 1, or Linux before 5.14
        deadline = time.monotonic() + timeout_s
        while is_populated(group) and time.monotonic() < deadline:
            send(processes(group), signal.SIGKILL)
            time.sleep(0.001)
    return not is_populated(group)


def is_populated(group: Path) -> bool:
    """Check whether anybody is in a group, also in one of version 1."""
    try:
        return event(group, "populated")
    except FileNotFoundError:
        return bool(processes(group))


def has_strangers(group: Path) -> bool:
    """Check whether a process outside our PID namespace is in a group."""
    return 0 in processes(group)


def bound_tasks(group: Path, most: int) -> bool:
    """Bound how many processes and threads a group may have; False where no pids controller reaches it."""
    with contextlib.suppress(OSError):
        write_kernel(group.parent / "cgroup.subtree_control", "+pids")  # version 2 hands it down on request alone
    try:
        write_kernel(group / "pids.max", str(most))
    except OSError:
        return False
    return True


def refused_tasks(group: Path) -> bool:
    """Check whether the bound on a group has refused a process or thread."""
    try:
        return read_kernel(f"{group}/pids.events").split()[:2] not in ([b"max", b"0"], [])
    except OSError:
        return False


def wait(group: Path, key: str, value: bool, timeout_s: float) -> bool:
    """Sleep until a flag of cgroup.events has this value; False when the time is out."""
    deadline = time.monotonic() + timeout_s
    with (group / "cgroup.events").open("rb", buffering=0) as events:
        poller = select.poll()
        poller.register(events, select.POLLPRI)
        while True:
            events.seek(0)
            if (b"%s 1" % key.encode() in events.read(4096).splitlines()) == value:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            poller.poll(left * 1000)


def here(places: Callable[[str, str], list[Path]]) -> list[Path]:
    """List the places of a kind for this process."""
    return places(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())


def _places(mountinfo: str, own_groups: str, kind: str, controller: str) -> list[Path]:
    lines = [line.split(":", 2) for line in own_groups.splitlines()]
    own = next((path for _, names, path in lines if controller in names.split(",")), "/")
    places = []
    for mount in mounts_in(mountinfo):
        if mount.fstype == kind and (not controller or controller in mount.options.split(",")):
            with contextlib.suppress(ValueError):
                places.append(Path(mount.point) / PurePosixPath(own).relative_to(mount.subtree))
            places.append(Path(mount.point))
    return list(dict.fromkeys(places))


def works(parent: Path) -> bool:
    """Try everything that will be needed, on a sleeping process."""
    group = parent / group_name("probe")
    sleeper = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=in_child())
    try:
        group.mkdir()
        move(group, sleeper.pid)
        return freeze(group, True, 2.0) and kill(group, 2.0)
    except OSError:
        return False
    finally:
        sleeper.kill()
        sleeper.wait()
        with contextlib.suppress(OSError):
            remove(group)


# Control groups of version 2 whose CPUs belong to them alone and are not balanced (cpuset.cpus.partition=isolated).

CONTROLLER = "cpuset"
CPUS, PARTITION, EFFECTIVE = "cpuset.cpus", "cpuset.cpus.partition", "cpuset.cpus.effective"
ISOLATED, MEMBER = "isolated", "member"
ON, OFF = "on", "off"
HANDED_DOWN = "cgroup.subtree_control"


def lacking() -> str:
    """Why this machine has no such groups, in a clause; "" where the kernel has them, whoever may ask it."""
    places = here(unified)
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


# Making and removing a group that is a folder of the kernel's: resctrl's or a control group.

THERE, ABSENT = "there", "absent"
OWN = "castmates"  # what the names begin with that no other program gives


def read(path: Path) -> str:
    """Check whether the group is there."""
    return THERE if path.is_dir() else ABSENT


def write(path: Path, state: str) -> None:
    """Make the group, or remove it: what is in it goes where the kernel would have put it, or back to the parent."""
    if state == THERE:
        path.mkdir(mode=0o755)
    else:
        # One with a name that pqos gives may be another pqos' by now, if ours was killed before it made it.
        if not path.name.startswith(OWN) and read_text(path / "tasks"):
            raise OSError(errno.EBUSY, "it has tasks, which are not of castmates")
        for inner, _, files in os.walk(path, topdown=False):
            # A control group is removed only when it is empty; resctrl's moves its tasks by itself.
            if "cgroup.procs" in files:
                _empty(Path(inner), path.parent)
                Path(inner).rmdir()
        if path.is_dir():
            path.rmdir()


def _empty(group: Path, parent: Path) -> None:
    while pids := (group / "cgroup.procs").read_text().split():
        if "0" in pids:  # a process outside our PID namespace; and a 0 written would be ourselves
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        for pid in pids:
            with suppress(ProcessLookupError):  # it has just ended
                write_kernel(parent / "cgroup.procs", pid)
