"""The resctrl file system as system calls: every refusal is an OSError with the kernel's errno."""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple, Protocol

from castmates.errors import CastmatesError
from castmates.linux.host import flock_holder
from castmates.linux.kernel_files import read_kernel, write_kernel
from castmates.linux.owner import maker_of_resctrl_group, myself
from castmates.linux.processes import held_by_root, name_of
from castmates.machine.quirks import ASSIGNED, COUNTED, FREE, Assignment, assignment, assignments

LOCK_S = 10.0  # how long we wait for others that hold the file system: libpqos gives up after a tenth of a second
_PAUSE_S = 0.005


class Tree(Protocol):
    """A mounted resctrl file system; paths are relative to where it is mounted ("" is that itself)."""

    def read(self, path: str) -> str:
        """Return the text of a file."""

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""

    def make(self, path: str) -> None:
        """Make a group: mkdir(2)."""

    def remove(self, path: str) -> None:
        """Remove a group: rmdir(2)."""

    def names(self, path: str) -> list[str]:
        """Name the files and folders in a folder, sorted."""

    def locked(self, exclusive: bool = True) -> AbstractContextManager[None]:
        """Hold the file system against others that keep to the convention of flock(2) on its root."""


class KernelTree:
    """The one that the kernel has mounted."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return read_kernel(self.root / path).decode(errors="replace")

    def write(self, path: str, text: str) -> None:
        """Give a file this text in one write(2)."""
        write_kernel(self.root / path, text)

    def make(self, path: str) -> None:
        """Make a group: mkdir(2)."""
        os.mkdir(self.root / path, 0o755)  # noqa: PTH102

    def remove(self, path: str) -> None:
        """Remove a group: rmdir(2)."""
        os.rmdir(self.root / path)  # noqa: PTH106

    def names(self, path: str) -> list[str]:
        """Name the files and folders in a folder, sorted."""
        return sorted(os.listdir(self.root / path))  # noqa: PTH208

    @contextmanager
    def locked(self, exclusive: bool = True) -> Iterator[None]:
        """Hold the file system against others that keep to the convention of flock(2) on its root."""
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    def _lock(self, fd: int, how: int) -> None:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                return fcntl.flock(fd, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    holder = flock_holder(os.fstat(fd))
                    if os.geteuid() == 0 and holder is not None and not held_by_root(holder, os.fstat(fd)):
                        return None  # whoever may look into the folder may lock it, and root is not held up by that
                    who = in_words(holder)
                    raise CastmatesError(
                        f"{self.root} has been locked for {LOCK_S:.0f} s by {who}; end it, or wait until it has ended,"
                        " and run the same command again."
                    ) from None
                time.sleep(_PAUSE_S)


def in_words(holder: int | None) -> str:
    """Name the process that holds a lock."""
    if holder is None:
        return "a process that cannot be identified from here"
    return f"process {holder} ({name_of(holder) or 'which has ended'})"


# One monitoring file, read again and again: a number of bytes, or why there is none.

NO_COUNT_YET = "Unavailable"  # of an id that was given out or taken over a moment ago

# The kernel's words, and what they mean.
NO_COUNT_WORDS = {
    NO_COUNT_YET: "Unavailable: the hardware has no count yet",
    "Error": "Error: the hardware could not count",
    "Unassigned": "Unassigned: no counter of the hardware is assigned to this group",
}


class Reading(NamedTuple):
    """A number, or None and the reason."""

    number: int | None
    why: str = ""
    resumed: bool = False  # the hardware had lost count, and has begun anew with this number


@dataclass
class EventFile:
    """One event of one group in one cache; kept open where that can be, since opening costs more than reading."""

    tree: Tree
    path: str
    reads: int = field(default=0, init=False)  # system calls
    _fd: int | None = field(default=None, init=False)

    def read(self) -> Reading:
        """Return the number, or None and the reason; what is not ready is asked once more.

        The hardware shows only once that it had lost count: the second answer is a number like any other.
        """
        try:
            first = text = self._text()
            if first == NO_COUNT_YET:
                text = self._text()
        except OSError as error:
            self.close()
            number = error.errno or 0
            return Reading(None, errno.errorcode.get(number, str(error.errno)) + READ_ERRORS.get(number, ""))
        if text.isdecimal():
            return Reading(int(text), resumed=first == NO_COUNT_YET)
        return Reading(None, NO_COUNT_WORDS.get(text, f"not a number: {text[:40]!r}"))

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _text(self) -> str:
        if not isinstance(self.tree, KernelTree):
            self.reads += 1
            return self.tree.read(self.path).strip()
        if self._fd is None:
            self._fd = os.open(self.tree.root / self.path, os.O_RDONLY | os.O_CLOEXEC)
            self.reads += 1
        self.reads += 1
        return os.pread(self._fd, 64, 0).decode(errors="replace").strip()


READ_ERRORS = {
    errno.ENOENT: ": the group or its cache is gone",
    errno.ENODEV: ": the group was removed",
    errno.EIO: ": the hardware could not count",
}


# What resctrl refused and why, in a sentence: the error number first, the kernel's own words beside it.

LAST_STATUS = "info/last_cmd_status"

# The error numbers that mean the same whatever was tried.
REFUSAL_ADVICE = {
    errno.EACCES: "this user may not: run as root, or let root prepare groups once with `castmates doctor --grant`",
    errno.EPERM: "this is not permitted here: run as root, outside of containers; where the processor only monitors, "
    "no control group can be made",
    errno.EROFS: "resctrl is mounted read-only here, as in containers: start the container with "
    "-v /sys/fs/resctrl:/sys/fs/resctrl, or run on the host",
    errno.ENOENT: "the group is gone: somebody has removed it, or unmounted resctrl, or run `pqos -R`",
    errno.ENODEV: "the group is gone: somebody has removed it, or unmounted resctrl, or run `pqos -R`",
}


def reason(tree: Tree, error: OSError) -> str:
    """Name the error, and what the kernel reports of its last command; to be called at once, under the lock.

    Its report is not trusted: every user's command overwrites it, and some refusals leave it at "ok".
    """
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    try:
        lines = tree.read(LAST_STATUS).splitlines()
        report = " / ".join(dict.fromkeys(line for line in lines if line))  # kernels append to what was there
    except OSError:
        report = ""
    return f"{code}, '{report}'" if report not in ("", "ok") else f"{code}, without a message from the kernel"


def refusal(tree: Tree, error: OSError, what: str, advice: str = "") -> CastmatesError:
    """Return the one sentence: what was refused, why, and what to do."""
    remedy = advice or REFUSAL_ADVICE.get(error.errno or 0, "")
    return CastmatesError(f"resctrl refused to {what} ({reason(tree, error)})" + (f": {remedy}." if remedy else "."))


# One event of one member in one cache, look by look: bytes that are there, or bytes per second since the last look.
#
# A rate is formed of two counts in a row with nothing between them: wherever the hardware may have lost count, the
# series begins anew at the next number, and what passed meanwhile is missing with its reason.

OCCUPANCY = "llc_occupancy"
# Bytes per second through one last-level cache that no reading can mean. The fastest memory of a processor's package
# delivers 1.6 TB/s (Xeon Max, HBM2e), the fastest memory modules 0.84 TB/s (12 channels of 8800 MT/s); a false
# overflow of AMD's counters, 2^44 units of 64 bytes within some tenths of a second, comes to more than 1000 TB/s.
MOST_BYTES_A_SECOND = 4e12

RESUMED = "the hardware had lost count before this reading (Unavailable), and counts anew"
WENT_BACK = "the counter went back: it was reset, or ran over"
NO_RATE = (None, "no rate yet: there is only one count since the last one was missing")
SeriesLook = tuple[float | None, str]


@dataclass
class Series:
    """The looks at one event of one member in one cache."""

    member: str
    event: str
    domain: int
    file: EventFile
    clock: Callable[[], int] = time.monotonic_ns
    _last: tuple[int, int] | None = field(default=None, init=False)  # time and count

    def restart(self) -> None:
        """Forget the last count: what passed between two windows belongs to none."""
        self._last = None

    def look(self) -> SeriesLook | None:
        """Return the value, or None and the reason; nothing at all where a rate has only its first count."""
        before = self.clock()
        count, why, resumed = self.file.read()
        now = (before + self.clock()) // 2
        if self.event == OCCUPANCY:
            return (None if count is None else float(count)), why
        last, self._last = self._last, None if count is None else (now, count)
        if count is None:
            return None, why
        if last is None or now <= last[0]:
            return None
        if resumed:
            return None, RESUMED
        if count < last[1]:
            return None, WENT_BACK
        rate = (count - last[1]) / (now - last[0]) * 1e9
        if rate > MOST_BYTES_A_SECOND:
            return (
                None,
                f"impossible: {rate / 1e12:.3g} TB/s, and no memory delivers {MOST_BYTES_A_SECOND / 1e12:g} TB/s to a "
                "cache",
            )
        return rate, ""


# Counters for the traffic of groups, where the kernel assigns them (`mbm_assign_mode` is mbm_event).

MONITORING_INFO = "info/L3_MON"
COUNTER_FILES = ("mbm_assign_mode", "num_mbm_cntrs", "available_mbm_cntrs")


@dataclass
class TrafficCounters:
    """Sees to it that each watched group has its counters, and keeps why it has none.

    They are assigned in groups that we made, and go with them; what is missing in a group of others is reported.
    """

    tree: Tree
    missing: dict[str, str] = field(default_factory=dict)  # member -> why some traffic of it is not counted

    def claim(self, member: str, path: str, wanted: Sequence[tuple[str, int]]) -> None:
        """Have these events counted in these caches, as far as counters are left."""
        if not self._here().assigned:
            return
        place = f"{path}/mbm_L3_assignments".lstrip("/")
        try:
            states = assignments(self.tree.read(place))
        except OSError as error:
            self.missing[member] = f"{place} cannot be read ({error.strerror})"
            return
        for event, domain in wanted:
            if states.get(event, {}).get(domain) == FREE:
                self._assign(member, place, event, domain, maker_of_resctrl_group(PurePath(path).name) == myself())

    def about(self) -> dict[str, str]:
        """Describe whether counters belong to groups, and who has none."""
        here = self._here()
        if ASSIGNED not in here.offered:  # there is no choice: Linux 7 shows the one mode on every processor
            return {}
        numbers = "; ".join(f"l3:{domain} {count}" for domain, count in here.counters.items())
        kinds = f"assigned to groups ({numbers})" if here.assigned else f"given by the hardware (mode {here.mode})"
        text = {"traffic counters": kinds}
        if self.missing:
            text["traffic not counted"] = "; ".join(f"{name}: {why}" for name, why in self.missing.items())
        return text

    def _assign(self, member: str, place: str, event: str, domain: int, ours: bool) -> None:
        if not ours:
            self.missing.setdefault(member, f"no counter is assigned to {event} in l3:{domain} of a group of others")
            return
        with self.tree.locked():
            try:
                self.tree.write(place, f"{event}:{domain}={COUNTED}\n")
            except OSError as error:
                free, most = self._here().free.get(domain, 0), self._here().counters.get(domain, 0)
                self.missing.setdefault(
                    member,
                    f"no counter for {event} in l3:{domain} ({reason(self.tree, error)}); {free} of {most} are free:"
                    " remove monitoring groups that nobody needs",
                )

    def _here(self) -> Assignment:
        files: dict[str, str | None] = {}
        for name in COUNTER_FILES:
            with suppress(OSError):  # only where the hardware has such counters, and not on every kernel
                files[name] = self.tree.read(f"{MONITORING_INFO}/{name}").strip()
        return assignment(files)
