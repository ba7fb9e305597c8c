"""The file that a member's output goes to: kept small, however much it writes.

The member writes to the file by itself, because a pipe would cost it time, and we cut the file while it goes on: the
first and the last words stay. It is opened for appending, so that what is written after a cut follows what was left.
"""

import os
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.english import printable
from castmates.workloads import heartbeat, phase_file, phase_records, request_file
from castmates.workloads.heartbeat import Beats, HeartbeatError, State
from castmates.workloads.phase_file import EPOCH, RANGE, Chunk, PhasesError
from castmates.workloads.phase_records import Names, Phase, Range

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


LIMIT = 16 << 20
KEPT = 256 << 10  # of each end


def create(log: Path) -> int:
    """Open an empty log for a member."""
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)


def cut(log: Path) -> bool:
    """Cut the middle out of a log that has become too long; True where that was so."""
    try:
        size = log.stat().st_size
        if size <= LIMIT:
            return False
        with log.open("r+b", buffering=0) as file:
            file.seek(size - KEPT)
            tail = file.read(KEPT)
            note = f"\n[castmates cut {size - 2 * KEPT} bytes out of this log here]\n".encode()
            file.seek(KEPT)
            file.write(note + tail)
            file.truncate(KEPT + len(note) + len(tail))
    except OSError:  # removed, or the file system is in trouble, which others will report
        return False
    return True


def last_lines(log: Path, count: int) -> list[str]:
    """Return the last lines in a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [printable(line).rstrip()[:300] for line in text.splitlines() if line.strip()][-count:]


# A heartbeat reader that a workload cannot hurt, whatever it does to its file.


class GuardedReader(heartbeat.Reader):
    """Looks at the file before it touches the mapping: to read behind the end of a cut file would kill the runner."""

    def __init__(self, path: Path, member: str) -> None:
        super().__init__(path)
        self._file, self._member = path, member
        self._identity = identity_of(path)

    @property
    def state(self) -> State:
        """What the workload last reported of itself."""
        self._check()
        return super().state

    @property
    def head(self) -> int:
        """How many records were ever written."""
        self._check()
        return super().head

    def beats(self, since: int = 0) -> Beats:
        """Read the records from number `since` on, which must go forward in time and in units."""
        beats = super().beats(since)
        if any(after[0] < before[0] or after[1] < before[1] for before, after in pairwise(beats.records)):
            raise HeartbeatError(f"{self._member} {_SPOILT}: its records do not go forward")
        return beats

    def _check(self) -> None:
        if identity_of(self._file) != self._identity:
            raise HeartbeatError(f"{self._member} {_SPOILT}: it was removed, replaced or cut")


_SPOILT = f"has spoilt its heartbeat file (${heartbeat.VARIABLE}, see castmates help heartbeat)"


# A file that the runner has mapped, and that a member could remove, replace or cut.


def identity_of(path: Path) -> tuple[int, int] | None:
    """What changes where a file is removed, replaced or cut; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size


class MappedFile:
    """Watches whether it is still the file that was mapped, in its whole length."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self._what = path, what
        self._identity = identity_of(path)
        self.trouble = ""  # why nothing more is read

    def is_sound(self) -> bool:
        """Look at the file before touching the mapping: to read behind the end of a cut file would kill the runner."""
        if not self.trouble and identity_of(self.path) != self._identity:
            self.trouble = f"the {self._what} file was removed, replaced or cut"
        return not self.trouble

    def spoilt(self, why: str) -> None:
        """Read no more of it."""
        self.trouble = f"the {self._what} file was spoilt: {why}"


# A member's phases file as the runner holds it: read while windows are open, kept as it was read.


class PhaseLog:
    """What a member reports of its phases, from its start on."""

    def __init__(self, path: Path, reader: phase_file.Reader) -> None:
        self._mapped, self._reader = MappedFile(path, "phases"), reader
        self._seen = 0
        self._parts: list[bytes] = []
        self._torn: list[int] = []  # before which part records were lost
        self.lost = 0  # overwritten before they were read
        self._known = Names()
        self.counters = reader.counters  # that the member was to read, each with how it fared
        self.lacks = reader.lacks  # what the numbers of some of them lack
        self._dropped = 0

    @classmethod
    def create(cls, path: Path, counters: Sequence[str]) -> "PhaseLog":
        """Make the file that the member is to write to; too many counters are a mistake in the catalogue."""
        phase_file.create(path, counters, ranges=False)
        return cls(path, phase_file.Reader(path))

    @property
    def variables(self) -> dict[str, str]:
        """What shows the member where to write."""
        return {phase_file.VARIABLE: str(self._mapped.path)}

    @property
    def trouble(self) -> str:
        """Why nothing more is read."""
        return self._mapped.trouble

    @property
    def names(self) -> Sequence[str]:
        """The phases in the order in which they first began, those around others before these."""
        return self._known.phases

    def forget(self) -> None:
        """Skip what was reported between two windows."""
        if self._mapped.is_sound():
            self._seen = self._reader.head

    def read(self) -> None:
        """Take what was reported since; the file holds only the latest."""
        if not self._mapped.is_sound():
            return
        try:
            chunk = self._reader.read(self._seen)
            self._look()
        except PhasesError as problem:
            self._mapped.spoilt(str(problem))
            return
        if chunk.lost:
            self.lost += chunk.lost
            self._torn.append(len(self._parts))
        if chunk.data:
            self._take(chunk)
        self._seen = chunk.head

    def parts(self) -> Iterator[tuple[list[Phase], bool]]:
        """Yield what was read, in order; and for each part whether records are missing before it."""
        torn = set(self._torn)
        for number, data in enumerate(self._parts):
            yield list(phase_records.phases_in(data, self._known, len(self.counters))), number in torn

    def about(self) -> dict[str, object]:
        """Return what was reported and what is missing."""
        about: dict[str, object] = {"names": self.names, "lost": self.lost, "not_recorded": self._dropped}
        trouble = self.trouble or ("" if self.names else "it reported no phase")
        more = {"counters": self.counters, "trouble": trouble}
        return about | {key: value for key, value in more.items() if value}

    def _look(self) -> None:
        """Take what stands in front of the records, after these."""
        self._known, self.counters = Names.of(self._reader), self._reader.counters
        self.lacks, self._dropped = self._reader.lacks, self._reader.dropped

    def _take(self, chunk: Chunk) -> None:
        self._parts.append(phase_records.without_payloads(chunk.data, len(self.counters))[0])


# A member's phases file where ranges are kept too.

Part = tuple[bytes, dict[int, str]]  # records, and their payloads


class RangeLog(PhaseLog):
    """What a member reports of its phases, ranges, instants and epochs."""

    def __init__(self, path: Path, reader: phase_file.Reader, most: int) -> None:
        super().__init__(path, reader)
        self.most = most  # ranges that are kept in a table
        self.left_out = 0  # of that table
        self._payloads: list[dict[int, str]] = []
        self._between: list[Part] = []  # ranges and epochs that ended between two windows
        self._open = self._cut = self._lost_between = 0

    @classmethod
    def of(cls, path: Path, counters: Sequence[str], most: int) -> "RangeLog":
        """Make the file that the member is to write to."""
        phase_file.create(path, counters)
        return cls(path, phase_file.Reader(path), most)

    def forget(self) -> None:
        """Skip what was reported between two windows, but for what is longer than windows: ranges and epochs."""
        if not self._mapped.is_sound():
            return
        try:
            chunk = self._reader.read(self._seen)
        except PhasesError as problem:
            self._mapped.spoilt(str(problem))
            return
        self._seen = chunk.head
        self._lost_between += chunk.lost
        size = self._reader.record_bytes
        records = (chunk.data[at : at + size] for at in range(0, len(chunk.data), size))
        if long := b"".join(one for one in records if phase_records.type_of(one) in (RANGE, EPOCH)):
            self._between.append(phase_records.without_payloads(long, len(self.counters)))

    def ranges(self) -> Iterator[Range]:
        """Yield everything that was read, in windows and between them."""
        for data, payloads in [*zip(self._parts, self._payloads, strict=True), *self._between]:
            yield from phase_records.ranges_in(data, payloads, self._known, len(self.counters))

    def about(self) -> dict[str, object]:
        """Return what was reported and what is missing."""
        found: dict[str, object] = {
            "domains": [domain for domain in self._known.domains if domain],
            "not_ended": self._open,
            "payloads_left_out": self._cut,
            "lost_between_windows": self._lost_between,
            "ranges_left_out": self.left_out,
        }
        return super().about() | {key: value for key, value in found.items() if value}

    def _look(self) -> None:
        super()._look()
        self._open, self._cut = self._reader.open, self._reader.cut

    def _take(self, chunk: Chunk) -> None:
        records, payloads = phase_records.without_payloads(chunk.data, len(self.counters))
        self._parts.append(records)
        self._payloads.append(payloads)


# A service's requests file as the runner holds it: scenes are announced in it, and records are read out of it.


class RequestLog:
    """What became of the requests to a service, from its start on."""

    def __init__(self, path: Path) -> None:
        self._mapped, self._file = MappedFile(path, "requests"), request_file.Runners(path)
        self._seen = 0
        self._parts: list[bytes] = []
        self._overrun = self._impossible = 0  # records that were overwritten before they were read, or are none

    @classmethod
    def create(cls, path: Path) -> "RequestLog":
        """Make the file that the service is to write to."""
        request_file.create(path)
        return cls(path)

    @property
    def variables(self) -> dict[str, str]:
        """What shows the service where to write."""
        return {request_file.VARIABLE: str(self._mapped.path)}

    def scene_ends(self, now_ns: int) -> None:
        """Let a service that runs know that the scene is over: its schedule ends here, and begins anew."""
        if self._mapped.is_sound():
            self._file.scene_ends(now_ns)

    def scene_begins(self) -> None:
        """Let a service that was frozen begin its schedule anew, when it is thawed."""
        if self._mapped.is_sound():
            self._file.scene_begins()

    def read(self) -> None:
        """Take what was recorded since; the file holds only the latest."""
        if not self._mapped.is_sound():
            return
        head = self._file.head
        if head < self._seen:
            self._mapped.spoilt("its number of records went back")
            return
        chunk = self._file.read(self._seen)
        self._overrun += chunk.lost
        if chunk.data:
            self._parts.append(chunk.data)
        self._seen = chunk.head

    def records(self) -> "npt.NDArray[np.uint64]":
        """A row per request (due, sent, answered), in order; what cannot be one is left out and counted as lost.

        An answer may come any time later: a request may be on its way while the service stands frozen in other scenes.
        """
        import numpy as np

        every = np.frombuffer(b"".join(self._parts), dtype=np.uint64).reshape(-1, 3)
        due, sent, answered = every[:, 0], every[:, 1], every[:, 2]
        unsent, unanswered = sent == 0, answered == 0
        possible = (unsent & unanswered) | (~unsent & (sent >= due) & (unanswered | (answered >= sent)))
        possible &= np.maximum(due, answered) <= time.monotonic_ns()
        self._impossible = int((~possible).sum())
        kept: npt.NDArray[np.uint64] = every[possible]
        return kept

    @property
    def lost(self) -> int:
        """How many records are missing, as far as it is known: `records` finds those that are none."""
        return self._overrun + self._impossible

    @property
    def trouble(self) -> str:
        """Why nothing more is read."""
        return self._mapped.trouble

    def about(self) -> dict[str, object]:
        """Return what is missing."""
        return {"records": self._seen, "lost": self.lost} | ({"trouble": self.trouble} if self.trouble else {})
