"""Sets a machine as a study wants it during a launch, and puts it back."""

import errno
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.linux import governor
from castmates.linux.host import DEFAULT_AFFINITY
from castmates.linux.kernel_files import NOT_PERMITTED
from castmates.machine import knobs
from castmates.machine.journal import Change, Journal
from castmates.machine.knobs import IRQ_AFFINITY, LEAVE_OUT
from castmates.protocols import Say
from castmates.study.model import Prepare

AFTER_LAUNCH = "cpuset"  # the runner sets it by itself, when everybody is in the group that it is set for

Record = dict[str, dict[str, Any]]  # knob -> what each of its files was before, and what it was set to


@dataclass(frozen=True, slots=True)
class Preparing:
    """For what a machine is set, and where each change is shown and written down."""

    purpose: str
    say: Say
    journal: Journal = field(default_factory=Journal)
    root: Path = Path("/")

    def set(self, knob: str, word: str, cpus: Collection[int]) -> dict[str, Any]:
        """Set a knob in all its files or registers; a refusal is an error."""
        changes = knobs.changes_of(knob, self.root, word, cpus)
        # Of a knob that is the same everywhere, the record also has the files that were as wanted already.
        read = knobs.KNOBS[knob].read(self.root) if knob in knobs.KNOBS else {}
        known = {str(file): value for file, value in read.items()}
        before = {change.target: change.former for change in changes} | known
        for target, error in self.journal.apply(changes, self.purpose).items():
            raise _refusal(knob, target, error)
        new = {target: governor.plain(value) for target, value in _new(changes).items()}
        return {"before": before, "set": before | new}

    def send_away(self, cpus: Collection[int]) -> dict[str, Any]:
        """Move interrupts off these CPUs; count those that the kernel holds in place (EIO or, from root, EPERM)."""
        changes = knobs.changes_of(IRQ_AFFINITY, self.root, "away", cpus)
        refused = self.journal.apply(changes, self.purpose)
        for target, error in refused.items():
            if error.errno in (errno.EACCES, errno.EROFS):
                raise _refusal(IRQ_AFFINITY, target, error)
        moved = [change for change in changes if change.target not in refused]
        single = [change.target for change in changes if not change.target.endswith(DEFAULT_AFFINITY)]
        if refused:
            self.say(f"{len(refused)} of {len(single)} interrupts cannot be moved off the launch's CPUs")
        if name := knobs.balancer(self.root):
            self.say(f"{name} is running and may move interrupts back: stop it (sudo systemctl stop {name})")
        return {
            "before": {change.target: change.former for change in moved},
            "set": _new(moved),
            "refused": {target: error.strerror for target, error in refused.items()},
        }


@contextmanager
def prepared(choices: Prepare, cpus: Collection[int], preparing: Preparing) -> Iterator[Record]:
    """Hold the machine as chosen; after the end the record also names what others have changed meanwhile."""
    record: Record = {}
    if not choices.words:
        yield record
        return
    held = ExitStack()
    try:
        for knob in sorted(choices.words, key=lambda knob: knob not in knobs.FIRST):
            word = choices.words[knob]
            if knob == AFTER_LAUNCH:
                continue
            if knob == IRQ_AFFINITY:
                record[knob] = preparing.send_away(cpus)
            elif knob == knobs.KNOB:
                record[knob] = held.enter_context(knobs.held(preparing.root, int(word)))
            else:
                record[knob] = preparing.set(knob, word, cpus)
        preparing.say(f"machine prepared: {', '.join(f'{knob} {word}' for knob, word in choices.words.items())}")
        yield record
    finally:
        held.close()
        for undone in preparing.journal.restore_mine():
            if undone.how in ("foreign", "gone", "failed"):
                preparing.say(str(undone))
                change = undone.entry.change
                record.get(change.knob, {}).setdefault("lost", {})[change.target] = undone.finding


def _new(changes: Collection[Change]) -> dict[str, str]:
    return {change.target: change.new for change in changes}


def _refusal(knob: str, target: str, error: OSError) -> CastmatesError:
    remedy = "run the study as root" if error.errno in NOT_PERMITTED else "set it by hand"
    return CastmatesError(f"{knob} cannot be set: {target}: {error.strerror}; {remedy}, {LEAVE_OUT}.")
