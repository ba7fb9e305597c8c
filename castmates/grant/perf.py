"""Lets users count what their own processes do, also inside the kernel; not what others' do."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.host import SYSCTL
from castmates.linux.owner import Owner, boot_id, born_of, myself
from castmates.machine.journal import KINDS, Change, Entry, Journal, Undone
from castmates.protocols import Say

# One thing is given after the other, and written down before; what was done, and how to undo it, is shown.

FOLDER = Path("/var/lib/castmates/grants")
INIT = 1
LASTS = "This lasts until `sudo castmates doctor --undo` or until the machine is restarted."


@dataclass(frozen=True, slots=True)
class Grantee:
    """The user who is to run sweeps."""

    name: str
    uid: int
    gid: int

    @property
    def owner(self) -> str:
        """The user as a file's owner."""
        return f"{self.uid}:{self.gid}"


@dataclass(frozen=True)
class Step:
    """One thing to be given."""

    what: str  # in words
    kind: str  # of the journal
    target: Path
    new: str  # its value then
    undo: str  # the command that takes it back


@dataclass
class Granting:
    """One run of `castmates doctor --grant`: what is shown, what could not be done, and the record that outlives it."""

    grantee: Grantee
    journal: Journal
    say: Say
    refused: list[str] = field(default_factory=list)

    def give(self, step: Step, advice: str = "") -> bool:
        """Take a step, unless it is taken already; where the kernel refuses, show that and return False."""
        error = self.attempt(step)
        if error is not None:
            self.refuse(f"{step.what}: {step.target}: {error.strerror or error}", advice)
        return error is None

    def attempt(self, step: Step) -> OSError | None:
        """Take a step, unless it is taken already; return the kernel's refusal."""
        try:
            former = KINDS[step.kind].read(step.target)
        except OSError as problem:
            return problem
        if former == step.new:
            self.say(f"  already: {step.what} ({step.target})")
            return None
        change = Change(step.what, step.kind, str(step.target), former, step.new)
        error = self.journal.apply([change], f"{self.grantee.name}'s sweeps").get(str(step.target))
        if error is None:
            self.say(f"  {step.what} ({step.target})")
            self.say(f"      undo: {step.undo}")
        return error

    def refuse(self, what: str, advice: str = "") -> None:
        """Describe what could not be given, and what may help."""
        sentence = f"not given: {what}" + (f"; {advice}" if advice else "")
        self.refused.append(sentence)
        self.say(f"  {sentence}")

    def leave(self, why: str) -> None:
        """Describe what is not needed, or cannot be had on this machine."""
        self.say(f"  {why}")


def record() -> Journal:
    """Return the record of what is granted. Its owner is the machine's first process, so a restart makes it stale."""
    chosen = os.environ.get("CASTMATES_STATE")
    folder = Path(chosen).absolute() / "grants" if chosen else FOLDER
    return Journal(folder, Owner(INIT, born_of(INIT) or 0, boot_id(), myself().space))


def granted() -> list[Entry]:
    """Return what is granted now, oldest first."""
    return [entry for entry in record().entries() if not entry.stale or KINDS[entry.change.kind].lasts]


def take_back() -> list[Undone]:
    """Take everything back, the latest first."""
    return record().restore(lambda _: True)


def find_grantee(name: str | None, environment: Mapping[str, str] = os.environ) -> Grantee:
    """Find the user that was named, or who called sudo."""
    name = name or environment.get("SUDO_USER")
    if not name:
        raise CastmatesError("name the user who runs sweeps: sudo castmates doctor --grant --user NAME")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise CastmatesError(f"there is no user '{name}' on this machine; give --user a name of /etc/passwd") from None
    if entry.pw_uid == 0:
        raise CastmatesError(f"'{name}' is root, who needs no grant; name the user who runs sweeps with --user")
    return Grantee(name, entry.pw_uid, entry.pw_gid)


def must_be_root(what: str) -> None:
    """Refuse everybody else."""
    if os.geteuid() != 0:
        raise CastmatesError(f"{what} needs root, this once: sudo castmates {what}")


def lines_of(entries: list[Entry]) -> list[str]:
    """Describe what is granted, a line for each."""
    return [f"{entry.change.knob} ({entry.change.target}), for {entry.purpose} since {entry.at}" for entry in entries]


SETTING = f"{SYSCTL}/kernel/perf_event_paranoid"
# The kernel's part of one's own processes, by thread. Whole CPUs, and with them control groups, stay closed to users:
# that would be 0, and shows everybody what others do.
NEEDED = 1


def give_counting(granting: Granting, root: Path = Path("/")) -> None:
    """Lower the threshold as far as it must be, which is less than a capability on the interpreter would give."""
    file = root / SETTING
    try:
        level = int(file.read_text())
    except (OSError, ValueError):
        granting.leave("nothing to give: this kernel has no perf events")
        return
    if level <= NEEDED:
        granting.leave(f"already: users may count their own processes (kernel.perf_event_paranoid is {level})")
        return
    words = f"users may count events of their own processes: kernel.perf_event_paranoid {level} -> {NEEDED}"
    step = Step(words, "file", file, str(NEEDED), f"sysctl kernel.perf_event_paranoid={level}")
    granting.give(step, "in a container set it on the host")
