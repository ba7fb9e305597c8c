"""Sets a machine as a study wants it for the time of a block, and puts it back."""

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.machine import knobs
from castmates.machine.journal import Change, Journal
from castmates.protocols import Say
from castmates.study.model import Prepare

NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)

Record = dict[str, dict[str, Any]]  # knob -> what each of its files was before, and what it was set to


@contextmanager
def prepared(
    wanted: Prepare,
    cpus: Collection[int],
    purpose: str,
    say: Say,
    journal: Journal | None = None,
    root: Path = Path("/"),
) -> Iterator[Record]:
    """Hold the machine as wanted; after the end the record also says what somebody else has changed meanwhile."""
    record: Record = {}
    if not wanted.words:
        yield record
        return
    journal = journal or Journal()
    try:
        for knob, word in wanted.words.items():
            if knob == knobs.IRQ_AFFINITY:
                record[knob] = _send_away(cpus, purpose, say, journal, root)
            else:
                record[knob] = _set(knobs.KNOBS[knob], word, purpose, journal, root)
        say(f"machine prepared: {', '.join(f'{knob} {word}' for knob, word in wanted.words.items())}")
        yield record
    finally:
        for undone in journal.restore_mine():
            if undone.how in ("foreign", "gone", "failed"):
                say(str(undone))
                change = undone.entry.change
                record.get(change.knob, {}).setdefault("lost", {})[change.target] = undone.found


def _set(knob: knobs.Knob, word: str, purpose: str, journal: Journal, root: Path) -> dict[str, Any]:
    before = {str(file): value for file, value in knob.read(root).items()}
    changes = knob.changes(root, word)
    for target, error in journal.apply(changes, purpose).items():
        raise _refusal(knob.name, target, error)
    return {"before": before, "set": before | _new(changes)}


def _send_away(cpus: Collection[int], purpose: str, say: Say, journal: Journal, root: Path) -> dict[str, Any]:
    """Move interrupts; those that the kernel holds where they are (EIO or, from root, EPERM) stay, and are counted."""
    changes = knobs.away(root, cpus)
    refused = journal.apply(changes, purpose)
    for target, error in refused.items():
        if error.errno in (errno.EACCES, errno.EROFS):
            raise _refusal(knobs.IRQ_AFFINITY, target, error)
    moved = [change for change in changes if change.target not in refused]
    if refused:
        say(f"{len(refused)} of {len(changes)} interrupts cannot be moved off the block's CPUs")
    if name := knobs.balancer(root):
        say(f"{name} is running and may move interrupts back: stop it (sudo systemctl stop {name})")
    return {
        "before": {change.target: change.former for change in moved},
        "set": _new(moved),
        "refused": {target: error.strerror for target, error in refused.items()},
    }


def _new(changes: Collection[Change]) -> dict[str, str]:
    return {change.target: change.new for change in changes}


def _refusal(knob: str, target: str, error: OSError) -> CastmatesError:
    remedy = "run the study as root" if error.errno in NOT_PERMITTED else "set it by hand"
    return CastmatesError(f"{knob} cannot be set: {target}: {error.strerror}; {remedy}, {knobs.LEAVE_OUT}.")
