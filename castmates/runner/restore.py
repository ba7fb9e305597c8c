"""Puts right what killed runs have left: knobs that are not as they were, control groups, scratch folders."""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from castmates.machine.journal import journals
from castmates.machine.lock import machine_lock
from castmates.machine.owner import Owner, boot_id, born_of, is_gone, myself
from castmates.runner import cgroups
from castmates.runner.warden import sweep

MEMORY = Path("/dev/shm")
FOLDER = re.compile(r"castmates-(\d+)-(\d+)-(\d+)-.+")
# What the freezer makes for a block, and what is made to try freezing: each name ends with its maker's number.
GROUPS = (re.compile(r"castmates\..+\.(\d+)\.\d+"), re.compile(r"castmates\.probe\.(\d+)"))


@dataclass
class Restored:
    """What was put right and what could not be, in sentences."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def told(self) -> list[str]:
        """Everything, in sentences."""
        return self.done + self.left


def restore_everything() -> Restored:
    """Put everything right; while somebody measures, an error says who."""
    with machine_lock("castmates restore", wait=False):
        return heal()


def heal() -> Restored:
    """Put right what was left; for whoever holds the machine's lock."""
    restored = Restored()
    for journal in journals():
        for undone in journal.restore(lambda entry: entry.stale):
            (restored.left if undone.how == "failed" else restored.done).append(str(undone))
    for what, found in (("cgroup", stale_groups()), ("path", stale_folders())):
        for path in list(found):
            sweep([(what, str(path))])
            if path.exists():
                restored.left.append(f"{path}: left by a killed run, and cannot be removed")
            else:
                restored.done.append(f"{path}: left by a killed run, removed")
    return restored


def folder_prefix() -> str:
    """Begin the name of a scratch folder so that it tells whose it is."""
    me = myself()
    return f"castmates-{me.pid}-{me.born}-{me.space}-"


def stale_folders() -> Iterator[Path]:
    """Find this user's scratch folders whose runner is gone."""
    for place in dict.fromkeys((MEMORY, Path(tempfile.gettempdir()), Path("/tmp"))):
        for folder in place.glob("castmates-*"):
            if (named := FOLDER.fullmatch(folder.name)) and _is_our_folder(folder):
                pid, born, space = map(int, named.groups())
                if is_gone(Owner(pid, born, boot_id(), space)):
                    yield folder


def stale_groups() -> Iterator[Path]:
    """Find control groups that we may remove and whose maker is gone."""
    own = Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    # All the way down: the killed run may have been in another session, and so in another group, than we are.
    folders = (
        Path(folder, name) for home in cgroups.candidates(*own) for folder, names, _ in os.walk(home) for name in names
    )
    for group in dict.fromkeys(folders):
        named = next(filter(None, (pattern.fullmatch(group.name) for pattern in GROUPS)), None)
        if named and born_of(int(named[1])) is None and _may_remove(group):
            yield group


def _may_remove(group: Path) -> bool:
    """Say whether a group is ours to remove: one with processes of another container is left to that one."""
    try:
        ours = os.geteuid() in (0, group.stat().st_uid)
    except OSError:  # it has just been removed
        return False
    return ours and all(map(_is_near, cgroups.processes(group)))


def _is_our_folder(path: Path) -> bool:
    """Say whether this is a directory that this user made."""
    try:
        status = path.lstat()
    except OSError:  # its owner has just removed it
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _is_near(pid: int) -> bool:
    """Say whether a process lives in our PID namespace, so that we know its runner by the same number."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino == myself().space
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return True
    except OSError:
        return False
