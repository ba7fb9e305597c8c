"""Puts right what killed runs have left: knobs that are not as they were, groups, mounts, scratch folders."""

from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.machine.journal import journals
from castmates.machine.lock import repair_lock
from castmates.protocols import Say
from castmates.rdt.resctrl.leftovers import remove_leftovers
from castmates.runner.cleanup.leftovers import Kind, clean_up, stale_folders, stale_groups


@dataclass
class Restored:
    """What was put right and what could not be, in sentences."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    occupied: list[Path] = field(default_factory=list)  # control groups that still hold processes

    @property
    def sentences(self) -> list[str]:
        """Everything, in sentences."""
        return self.done + self.left


def restore_everything() -> Restored:
    """Put everything right; while a launch is measured, an error names it, and root's repair waits for root alone."""
    with repair_lock("castmates doctor --restore"):
        return heal()


def heal() -> Restored:
    """Put right what was left by processes that have ended."""
    restored = Restored()
    # First, because the mount that a journal names is not undone while there is any group in it.
    restored.done, restored.left = remove_leftovers()
    # Before the journals, because no controller is taken from a group as long as one inside it hands that down.
    for group in list(stale_groups()):
        if not _remove("cgroup", group, restored) and cgroups.is_populated(group):
            restored.occupied.append(group)
    for journal in journals():
        for undone in journal.restore(lambda entry: entry.stale):
            (restored.left if undone.how == "failed" else restored.done).append(str(undone))
    for folder in list(stale_folders()):
        _remove("path", folder, restored)
    return restored


def _remove(kind: Kind, path: Path, restored: Restored) -> bool:
    """Remove what a killed run has left; whether that succeeded, which is noted too."""
    clean_up([(kind, str(path))])
    if path.exists():
        restored.left.append(f"{path}: left by a killed run, and cannot be removed")
        return False
    restored.done.append(f"{path}: left by a killed run, removed")
    return True


def heal_or_refuse(say: Say) -> Restored:
    """Put right what killed runs have left; an error where their processes live on and would disturb a measurement."""
    restored = heal()
    for sentence in restored.sentences:
        say(sentence)
    for group in restored.occupied:
        pids = ", ".join(map(str, sorted(cgroups.processes(group))))
        raise CastmatesError(
            f"{group}, left by a killed run, still holds processes that cannot be killed ({pids}) and would disturb "
            "what is measured: end them, or restart the machine, and run the same command again."
        )
    return restored
