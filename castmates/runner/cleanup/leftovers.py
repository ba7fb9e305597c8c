"""Removes what a runner has left: what it announced to its warden, and what its names show to be its own."""

import contextlib
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from castmates.linux import cgroups
from castmates.linux.marks import MarkedFamily, bearers
from castmates.linux.owner import Owner, is_gone, maker_of_folder, maker_of_group
from castmates.linux.processes import read_process, send
from castmates.machine.journal import Journal

Kind = Literal["cgroup", "process", "journal", "path", "orphan"]
Guarded = tuple[Kind, object]  # what was announced, as it can be written down in JSON
# Groups first: what is frozen there cannot be stopped by signals. Files last: the living may write again.
ORDER: tuple[Kind, ...] = ("cgroup", "process", "journal", "path", "orphan")
LONGEST_S = 10.0
MEMORY = Path("/dev/shm")
DISK = (Path("/tmp"), Path("/var/tmp"))
_DYING_S = 1.0  # between the closing of a dying process's files and its end


def clean_up(guarded: Iterable[Guarded]) -> None:
    """Kill and remove everything that was announced; what fails is passed over, because the rest must go too."""
    deadline = time.monotonic() + LONGEST_S
    for kind, value in sorted(guarded, key=lambda item: ORDER.index(item[0])):
        left_s = max(0.5, deadline - time.monotonic())
        with contextlib.suppress(Exception):
            if isinstance(value, list):
                MarkedFamily(value[0], value[1]).kill(left_s)
            elif isinstance(value, dict):
                Journal(Path(value["folder"]), Owner(**value["owner"])).restore_mine()
            elif kind == "cgroup":
                _remove_group(Path(str(value)), left_s)
            elif kind == "orphan":
                remove_own_file(Path(str(value)))
            else:
                _remove_path(Path(str(value)), left_s)


def remove_own_file(file: Path) -> None:
    """Remove a file where everybody may write, such as /tmp, if it is a file, and ours."""
    with contextlib.suppress(OSError):
        found = file.lstat()
        if stat.S_ISREG(found.st_mode) and os.geteuid() in (0, found.st_uid):
            file.unlink()


def _remove_group(group: Path, left_s: float) -> None:
    if group.is_dir() and cgroups.kill(group, left_s):
        cgroups.remove(group)


def _remove_path(path: Path, left_s: float) -> None:
    """Remove the path, and before it everyone who has it in the environment or bears the mark of who made it."""
    deadline = time.monotonic() + left_s
    while (users := bearers(path)) and time.monotonic() < deadline:
        send(users, signal.SIGKILL)
        time.sleep(0.01)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def clean_up_unannounced(runner: int) -> None:
    """Remove what a runner had made and was killed before it could announce it; names show whose it is."""
    deadline = time.monotonic() + _DYING_S
    while (process := read_process(runner)) and process.alive and time.monotonic() < deadline:
        time.sleep(0.005)
    groups: list[Guarded] = [("cgroup", str(group)) for group in stale_groups()]
    clean_up([*groups, *(("path", str(folder)) for folder in stale_folders())])


def stale_folders() -> Iterator[Path]:
    """Find this user's scratch folders whose runner is gone."""
    # Not tempfile's choice: to find out it would write, and on a full disk there is none.
    chosen = [Path(name).absolute()] if (name := os.environ.get("TMPDIR")) else []
    for place in dict.fromkeys((MEMORY, *chosen, *DISK)):
        for folder in place.glob("castmates-*"):
            if (maker := maker_of_folder(folder.name)) and _is_our_folder(folder) and is_gone(maker):
                yield folder


def stale_groups() -> Iterator[Path]:
    """Find control groups that we may remove and whose maker is gone."""
    # All the way down: the killed run may have been in another session, and so in another group, than we are.
    folders = (
        Path(folder, name) for home in cgroups.everywhere() for folder, names, _ in os.walk(home) for name in names
    )
    for group in dict.fromkeys(folders):
        if (maker := maker_of_group(group.name)) and is_gone(maker) and _may_remove(group):
            yield group


def _may_remove(group: Path) -> bool:
    """Check whether a group is ours to remove: one with processes outside our PID namespace is not."""
    try:
        ours = os.geteuid() in (0, group.stat().st_uid)
    except OSError:  # it has just been removed
        return False
    return ours and not cgroups.has_strangers(group)


def _is_our_folder(path: Path) -> bool:
    """Check whether this is a directory that this user made."""
    try:
        status = path.lstat()
    except OSError:  # its owner has just removed it
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
