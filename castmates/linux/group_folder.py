"""Makes and removes a group that is a folder of the kernel's: resctrl's or a control group."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from castmates.linux.kernel_files import read_text, write_kernel

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
        _remove(path)


def _remove(path: Path) -> None:
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
            _move(pid, parent)


def _move(pid: str, parent: Path) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        write_kernel(parent / "cgroup.procs", pid)
