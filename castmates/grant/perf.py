"""Lets users count what their own processes do, also inside the kernel; not what others' do."""

import grp
import os
import pwd
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import capable_copy, ownership, tracing_rights
from castmates.linux.host import SYSCTL, has_capability
from castmates.linux.kernel_files import below
from castmates.linux.owner import Owner, boot_id, born_of, myself
from castmates.linux.ownership import others_in
from castmates.linux.tracing_rights import INTERRUPTS, SCHEDULER, SYSCALLS, TRACEPOINTS, granted_perf
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


# Lets a user trace: the system calls of the user's own processes; and if asked, who wakes them and runs instead.
#
# The kernel lets users record raw system calls of their own processes once they can look the two tracepoints up. The
# scheduler's tracepoints name other programs too, so the kernel gives them only to who may see the whole machine: the
# user gets a copy of perf that may, and that nobody else may run.

ADVICE = "in a container grant it on the host"
_SHOWING = ("trace", "trace_pipe", "snapshot")  # what is recorded now, of whomever
_SEARCH = 0o001  # to look a file up by its name, without listing the folder


def give_tracing(granting: Granting, everything: bool, root: Path = Path("/")) -> None:
    """Let the user look up the tracepoints that the user may record; what they describe is no secret."""
    point = tracing_rights.mounted(root)
    if point is None:
        granting.leave("nothing to give: tracefs is not mounted (sudo mount -t tracefs nodev /sys/kernel/tracing)")
        return
    point = below(root, str(point))
    families = (SYSCALLS, SCHEDULER, INTERRUPTS) if everything else (SYSCALLS,)
    if _enter(granting, point) and _look_up(granting, point, [name for each in families for name in TRACEPOINTS[each]]):
        if everything:
            _copy(granting)
        else:
            granting.leave(
                "not given: who wakes a thread and who runs instead of it; this shows all programs of the machine, so "
                "it has to be asked for: --tracing"
            )


def _enter(granting: Granting, point: Path) -> bool:
    try:
        mode = int(ownership.read_mode(point), 8)
    except OSError as problem:
        granting.refuse(f"{point}: {problem.strerror}", ADVICE)
        return False
    if mode & _SEARCH:
        granting.leave(f"already: files in {point} can be looked up by name")
        return True
    # Linux 5.17 took these from everybody; before it only the folder's mode keeps them closed.
    if shown := [str(file) for name in _SHOWING if (file := point / name).exists() and file.stat().st_mode & 0o006]:
        granting.refuse(
            f"{point}: {Path(shown[0]).name} is open to every user, who would see what others record",
            f"close it first: chmod o-rw {' '.join(shown)}",
        )
        return False
    words = "files of tracefs can be looked up by name, by who may read them"
    return granting.give(Step(words, "mode", point, f"{mode | _SEARCH:o}", f"chmod {mode:o} {point}"), ADVICE)


def _look_up(granting: Granting, point: Path, tracepoints: Collection[str]) -> bool:
    """Hand over the descriptions of tracepoints; what would switch one on stays root's."""
    owner = granting.grantee.owner
    for file in tracing_rights.files(point, tracepoints):
        words = f"{file.relative_to(point / 'events')} can be read by {granting.grantee.name}"
        if file.exists() and not granting.give(Step(words, "owner", file, owner, f"chown root:root {file}"), ADVICE):
            return False
    return True


def _copy(granting: Granting) -> None:
    grantee = granting.grantee
    if not has_capability(capable_copy.CAPABILITIES["cap_perfmon"]):
        granting.refuse("tracing: this kernel has no CAP_PERFMON", "it came with Linux 5.8; until then, trace as root")
        return
    if others := others_in(grantee.gid, frozenset({grantee.name})):
        group = grp.getgrgid(grantee.gid).gr_name
        granting.refuse(
            f"tracing: {', '.join(others)} would get it too, by the group {group}",
            f"give {grantee.name} a main group without others",
        )
        return
    copy = granted_perf(grantee.uid)
    words = f"a perf that sees all processes of this machine, for {grantee.name} alone"
    try:
        step = Step(words, "capable-copy", copy, capable_copy.wanted(grantee.gid), f"rm {copy}")
    except OSError as problem:
        granting.refuse(f"tracing: {problem.strerror}")
        return
    if granting.give(step, "the file system there must keep capabilities"):
        granting.leave("this copy stays until `sudo castmates doctor --undo`, whatever is restarted")
