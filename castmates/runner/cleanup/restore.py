"""Puts right what killed runs have left: knobs that are not as they were, groups, mounts, scratch folders."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.owned_names import maker_of_folder, maker_of_group
from castmates.linux.owner import is_gone
from castmates.machine.journal import journals
from castmates.machine.lock import machine_lock
from castmates.rdt.resctrl import leftovers
from castmates.runner.cleanup.warden import sweep

MEMORY = Path("/dev/shm")
DISK = (Path("/tmp"), Path("/var/tmp"))


@dataclass
class Restored:
    """What was put right and what could not be, in sentences."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    occupied: list[Path] = field(default_factory=list)  # control groups in which somebody still lives

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
    # First, for the mount that a journal tells of is not undone while there is any group in it.
    restored.done, restored.left = leftovers.remove_leftovers()
    for journal in journals():
        for undone in journal.restore(lambda entry: entry.stale):
            (restored.left if undone.how == "failed" else restored.done).append(str(undone))
    for what, found in (("cgroup", stale_groups()), ("path", stale_folders())):
        for path in list(found):
            sweep([(what, str(path))])
            if path.exists():
                restored.left.append(f"{path}: left by a killed run, and cannot be removed")
                if what == "cgroup" and cgroups.is_populated(path):
                    restored.occupied.append(path)
            else:
                restored.done.append(f"{path}: left by a killed run, removed")
    return restored


def heal_or_refuse(say: Callable[[str], None]) -> Restored:
    """Put right what killed runs have left; where their processes live on, nothing is measured beside them."""
    restored = heal()
    for sentence in restored.told:
        say(sentence)
    for group in restored.occupied:
        pids = ", ".join(map(str, sorted(cgroups.processes(group))))
        raise CastmatesError(
            f"{group}, left by a killed run, still holds processes that cannot be killed ({pids}) and would disturb "
            "what is measured: end them, or restart the machine, and run the same command again."
        )
    return restored


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
    """Say whether a group is ours to remove: one with processes outside our PID namespace is not."""
    try:
        ours = os.geteuid() in (0, group.stat().st_uid)
    except OSError:  # it has just been removed
        return False
    return ours and not cgroups.has_strangers(group)


def _is_our_folder(path: Path) -> bool:
    """Say whether this is a directory that this user made."""
    try:
        status = path.lstat()
    except OSError:  # its owner has just removed it
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
