"""What is changed on this machine: written down before it is changed, so that it is put back whatever happens.

The journal lies where it outlives the process and a restart. It is only appended to, and emptied when nothing is left
to put back. A line torn by a crash was never acted upon, because a change comes after its line has reached the disk.
"""

import errno
import fcntl
import json
import operator
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from castmates.errors import CastmatesError
from castmates.files import sync_folder
from castmates.linux import capable_copy, cgroups, cpu_quota, governor, msr, ownership
from castmates.linux.kernel_files import read_setting, write_setting
from castmates.linux.owner import Owner, boot_id, is_gone, myself
from castmates.machine import resctrl_state
from castmates.machine.lock import open_own_lock

MACHINE_WIDE = Path("/var/lib/castmates")
NAME, LOCK = "journal", "journal.lock"
GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)


@dataclass(frozen=True, slots=True)
class Kind:
    """How to read and set one kind of thing, as text; both raise OSError."""

    read: Callable[[Path], str]
    write: Callable[[Path, str], None]
    same: Callable[[str, str], bool] = operator.eq  # whether what was read is what was written down
    lasts: bool = False  # whether it outlives a restart of the machine


KINDS: dict[str, Kind] = {
    "file": Kind(read_setting, write_setting),
    "group": Kind(cgroups.read, cgroups.write),
    "owner": Kind(ownership.read, ownership.write),
    governor.KIND: Kind(governor.read, governor.write, governor.same),
    msr.KIND: Kind(msr.read, msr.write),
    "cpu-controller": Kind(cpu_quota.read_controller, cpu_quota.write_controller),
    "cpuset-controller": Kind(cgroups.read_controller, cgroups.write_controller),
    resctrl_state.KIND: Kind(resctrl_state.read, resctrl_state.write, resctrl_state.same),
    "resctrl-schemata": Kind(resctrl_state.read_schemata, resctrl_state.write_schemata, resctrl_state.same_schemata),
    "resctrl-mount": Kind(resctrl_state.read_mount, resctrl_state.write_mount),
    "mode": Kind(ownership.read_mode, ownership.write_mode),
    "capable-copy": Kind(capable_copy.read, capable_copy.write, lasts=True),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is, or was, to be set to another value."""

    knob: str
    kind: str
    target: str
    former: str
    new: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One change that has not been taken back."""

    number: int
    change: Change
    owner: Owner
    purpose: str
    at: str

    @property
    def stale(self) -> bool:
        """Whether no process is left that would take it back."""
        return is_gone(self.owner)

    def __str__(self) -> str:
        change = self.change
        return f"{change.knob} ({change.target}) was set from '{change.former}' to '{change.new}' for {self.purpose}"


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of an entry that was to be taken back."""

    entry: Entry
    how: Literal["restored", "already", "foreign", "gone", "restarted", "failed"]
    finding: str = ""  # the value that another program set, or why putting back failed

    def __str__(self) -> str:
        change = self.entry.change
        results = {
            "restored": f"put back to '{change.former}' from '{change.new}'",
            "already": f"is '{change.former}', as it was",
            "foreign": f"is '{self.finding}' by now, neither as found ('{change.former}') nor as castmates set it "
            f"('{change.new}'): somebody else has changed it, so it is left as it is",
            "gone": "is no longer there",
            "restarted": "left to the restart of the machine, which undid it",
            "failed": f"could not be put back to '{change.former}': {self.finding}",
        }
        return f"{change.knob} ({change.target}): {results[self.how]}"


def folders() -> list[Path]:
    """List the folders whose journals concern this process: the machine's and the user's, or $CASTMATES_STATE alone."""
    if chosen := os.environ.get("CASTMATES_STATE"):
        return [Path(chosen).absolute()]
    with suppress(RuntimeError):  # a user without a home
        return [MACHINE_WIDE, Path.home() / ".local/state/castmates"]
    return [MACHINE_WIDE]


def journals() -> list["Journal"]:
    """Every journal that concerns this process."""
    return [Journal(folder) for folder in folders()]


def left_changed() -> list[str]:
    """List in sentences what a process that has ended did not put back."""
    return [str(entry) for journal in journals() for entry in journal.entries() if entry.stale]


class Journal:
    """The journal in one folder; without one, where this process may write: the machine's place first."""

    def __init__(self, folder: Path | None = None, owner: Owner | None = None) -> None:
        self.path = (folder or next(filter(_may_write, folders()), folders()[-1])) / NAME
        self.owner = owner or myself()

    def apply(self, changes: Sequence[Change], purpose: str) -> dict[str, OSError]:
        """Write all changes down, make them, and return the refused ones by target; the refused are as before."""
        refused: dict[str, OSError] = {}
        if not changes:
            return refused
        with self._writing() as file:
            for entry in self._append(file, changes, purpose):
                try:
                    kind, target = KINDS[entry.change.kind], Path(entry.change.target)
                    kind.write(target, entry.change.new)
                    if not kind.same(value := kind.read(target), entry.change.new):
                        kind.write(target, entry.change.former)
                        raise OSError(errno.EINVAL, f"the kernel took '{entry.change.new}' but reports '{value}'")
                except OSError as error:
                    refused[entry.change.target] = error
                    self._undo_and_close(file, entry)
        return refused

    def announce(self, changes: Sequence[Change], purpose: str) -> list[Entry]:
        """Write changes down that the caller makes itself, and takes back itself or leaves to `restore`."""
        with self._writing() as file:
            return self._append(file, changes, purpose)

    def amend(self, entry: Entry, new: str) -> Entry:
        """Write down what an announced change comes to next, before it does; what it was before it stays."""
        amended = replace(entry, change=replace(entry.change, new=new))
        with self._writing() as file:
            _write_lines(file, [_record(amended)])
            os.fsync(file)
        return amended

    def close(self, entries: Iterable[Entry]) -> None:
        """Strike out what the caller has taken back itself."""
        with suppress(OSError), self._locked() as file:  # else it is found put back already the next time
            _write_lines(file, [{"close": entry.number, "how": "restored"} for entry in entries])
            self._finish(file)

    def entries(self) -> list[Entry]:
        """List what has not been taken back, oldest first; nothing where the journal cannot be read or trusted."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        with os.fdopen(fd, "rb") as file:
            return list(_entries(file.read()).values()) if _is_trusted(fd) else []

    def restore(self, whose: Callable[[Entry], bool]) -> list[Undone]:
        """Take back what is chosen, the latest first; what cannot be put back stays in the journal."""
        if not any(map(whose, self.entries())):
            return []
        try:
            with self._locked() as file:
                chosen = [entry for entry in self._read(file).values() if whose(entry)]
                undone = [self._undo_and_close(file, entry) for entry in reversed(chosen)]
                self._finish(file)
                return undone
        except OSError as error:
            why = f"the journal {self.path} cannot be written ({error.strerror}); try: sudo castmates doctor --restore"
            return [Undone(entry, "failed", why) for entry in filter(whose, self.entries())]

    def restore_mine(self) -> list[Undone]:
        """Take back what our owner, which is this process if no other was named, has done."""
        return self.restore(lambda entry: entry.owner == self.owner)

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Hold the journal to write down what is to be changed; an error is a sentence, and nothing is changed."""
        try:
            with self._locked() as file:
                yield file
        except OSError as error:
            raise CastmatesError(
                f"the journal {self.path} cannot be written ({error.strerror}), so nothing is changed on this machine."
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the journal: a warden and the next launch may want to put the same things back at the same time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            if not _is_trusted(fd):
                raise CastmatesError(f"{self.path} can be written by others; find out who made it, then remove it.")
            lock = open_own_lock(self.path.with_name(LOCK))  # others may read the journal itself
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield fd
            finally:
                os.close(lock)
        finally:
            os.close(fd)

    def _read(self, file: int) -> dict[int, Entry]:
        return _entries(os.pread(file, os.fstat(file).st_size, 0))

    def _append(self, file: int, changes: Iterable[Change], purpose: str) -> list[Entry]:
        """Return the entries when they are safely on the disk, with the name of their file."""
        first = max(self._read(file), default=0) + 1
        at = datetime.now().astimezone().isoformat(timespec="seconds")
        entries = [Entry(first + n, change, self.owner, purpose, at) for n, change in enumerate(changes)]
        _write_lines(file, map(_record, entries))
        os.fsync(file)
        if first == 1:
            sync_folder(self.path.parent)
        return entries

    def _undo_and_close(self, file: int, entry: Entry) -> Undone:
        undone = _undo(entry)
        if undone.how != "failed":
            # On a full disk the line is lost: the entry is then found put back already the next time.
            with suppress(OSError):
                _write_lines(file, [{"close": entry.number, "how": undone.how}])
        return undone

    def _finish(self, file: int) -> None:
        with suppress(OSError):  # what is done is done
            if not self._read(file):
                os.ftruncate(file, 0)
            os.fsync(file)


def _undo(entry: Entry) -> Undone:
    change, kind = entry.change, KINDS.get(entry.change.kind)
    if entry.owner.boot != boot_id() and not (kind and kind.lasts):
        return Undone(entry, "restarted")  # what has its value now got it from the kernel or an administrator
    if kind is None:
        return Undone(entry, "failed", f"this version of castmates does not know what '{change.kind}' is")
    try:
        value = kind.read(Path(change.target))
        if kind.same(value, change.former):
            return Undone(entry, "already")
        if not kind.same(value, change.new):
            return Undone(entry, "foreign", value)
        kind.write(Path(change.target), change.former)
        if not kind.same(value := kind.read(Path(change.target)), change.former):
            return Undone(entry, "failed", f"the kernel still reports '{value}'")
    except OSError as error:
        return Undone(entry, "gone") if error.errno in GONE else Undone(entry, "failed", error.strerror or str(error))
    return Undone(entry, "restored")


def _entries(text: bytes) -> dict[int, Entry]:
    """Return the open entries by number; ignore a last line without its end, and what is no entry."""
    entries: dict[int, Entry] = {}
    for line in text.split(b"\n")[:-1]:
        with suppress(ValueError, TypeError, KeyError):
            record: dict[str, Any] = json.loads(line)
            if "close" in record:
                entries.pop(record["close"], None)
            else:
                change, owner = Change(**record["change"]), Owner(**record["owner"])
                entries[record["open"]] = Entry(record["open"], change, owner, record["purpose"], record["at"])
    return entries


def _record(entry: Entry) -> dict[str, Any]:
    return {"open": entry.number, **asdict(entry)}


def _write_lines(file: int, records: Iterable[dict[str, Any]]) -> None:
    """Append whole lines or nothing."""
    size = os.fstat(file).st_size
    end = os.pread(file, size, 0).rfind(b"\n") + 1  # what follows was torn
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    try:
        if os.pwrite(file, text, end) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(file, end)
        raise
    os.ftruncate(file, end + len(text))


def _may_write(folder: Path) -> bool:
    """Check whether a journal can be kept in this folder, which may have to be made."""
    try:
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
    except OSError:  # it lies where this user may not even look
        return False
    return os.access(nearest, os.W_OK | os.X_OK)


def _is_trusted(fd: int) -> bool:
    """Check whether only we or root can have written it: its values are written to kernel files."""
    status = os.fstat(fd)
    writers = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()) and not status.st_mode & writers
