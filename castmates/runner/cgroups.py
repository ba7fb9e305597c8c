"""Control groups, version 2: find a place where groups may be made, and freeze, thaw and kill what is in them."""

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path, PurePosixPath

from castmates.counters.processes import send
from castmates.errors import CastmatesError


def find_home() -> Path | None:
    """Find a cgroup2 directory in which this process may really make, fill, freeze and kill a group."""
    for candidate in candidates(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()):
        if _works(candidate):
            return candidate
    return None


def candidates(mountinfo: str, own_groups: str) -> list[Path]:
    """List where groups might be made, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    own = next((line[3:] for line in own_groups.splitlines() if line.startswith("0::/")), "/")
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        if right.split(" ", 1)[0] == "cgroup2":
            root, point = (_unescape(part) for part in left.split()[3:5])
            with contextlib.suppress(ValueError):
                found.append(Path(point) / PurePosixPath(own).relative_to(root))
            found.append(Path(point))
    return list(dict.fromkeys(found))


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
    _write(group / "cgroup.procs", str(pid))


def processes(group: Path) -> list[int]:
    """List the processes in a group and in the groups inside it."""
    found: list[int] = []
    for folder in [group, *(Path(path) for path, _, _ in os.walk(group) if Path(path) != group)]:
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    return found


def event(group: Path, key: str) -> bool:
    """Read one flag of cgroup.events: "frozen" or "populated"."""
    return f"{key} 1" in (group / "cgroup.events").read_text().splitlines()


def freeze(group: Path, frozen: bool, timeout_s: float) -> bool:
    """Freeze or thaw a group and say whether it came true within the time."""
    _write(group / "cgroup.freeze", "1" if frozen else "0")
    return wait(group, "frozen", frozen, timeout_s)


def kill(group: Path, timeout_s: float) -> bool:
    """Kill everything in a group, frozen or not, and say whether it was empty within the time."""
    if not event(group, "populated"):
        return True
    try:
        _write(group / "cgroup.kill", "1")
        return wait(group, "populated", False, timeout_s)
    except FileNotFoundError:  # Linux before 5.14
        deadline = time.monotonic() + timeout_s
        while event(group, "populated") and time.monotonic() < deadline:
            send(processes(group), signal.SIGKILL)
            time.sleep(0.001)
    return not event(group, "populated")


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


def _works(parent: Path) -> bool:
    """Try everything that will be needed, on a sleeping process."""
    group = parent / f"castmates.probe.{os.getpid()}"
    sleeper = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, start_new_session=True)
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


def _write(path: Path, text: str) -> None:
    """Write to a kernel file in one call and without creating it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _unescape(field: str) -> str:
    """Undo mountinfo's octal escapes of blanks, tabs, newlines and backslashes."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field
