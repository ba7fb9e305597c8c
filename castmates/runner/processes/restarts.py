"""The restarts of a command that is run again and again: how long none ran in between, read at a window's close.

Its keeper (native/loop.c) writes down when each run ended and when the next one went on; see docs/heartbeat.md.
"""

import contextlib
import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.protocols import Sample
from castmates.study.reasons import Reason, ReasonKind
from castmates.study.spec import Member
from castmates.workloads import heartbeat

VARIABLE = "CASTMATES_RESTARTS"
CAPACITY = 16384  # between two looks of the runner, a second apart at most
SOURCE = "keeper"
WAITS = (
    "the keeper has not begun",
    "the next run waits after its exec",
    "the next run waits before its exec",
    "the next run is prepared after the last one",
)

_UNITS, _UNITS_AT = struct.Struct("QQQ"), 32  # of whole runs, in words that a heartbeat file reserves

Gap = tuple[int, int]  # ns: the end of one run as its keeper saw it, and the moment the next one was let go


class Restarts:
    """The gaps between the runs of one member, as its keeper reports them."""

    def __init__(self, path: Path) -> None:
        self.variables = {VARIABLE: str(path)}  # for its keeper
        self.in_slices = True
        self._header: mmap.mmap | None = None  # outlives the file's name
        self._reader = heartbeat.Reader(path)
        self._next = 0  # the record to go on from
        self._gaps: list[Gap] = []
        self._open: int | None = None  # the end of a run that no other has followed yet
        self.lost = 0  # restarts that were overwritten before they were read

    @classmethod
    def create(cls, path: Path, in_slices: bool = True) -> "Restarts":
        """Make the file for the keeper and open it; `in_slices` where gaps may lie in slices, which have them."""
        heartbeat.create(path, CAPACITY)
        restarts = cls(path)
        restarts.in_slices = in_slices
        with path.open("rb") as file:
            restarts._header = mmap.mmap(file.fileno(), _UNITS_AT + _UNITS.size, access=mmap.ACCESS_READ)
        return restarts

    def about(self) -> dict[str, int]:
        """Return how many whole runs there were, and the fewest and the most units that one of them made."""
        units = (0, 0, 0) if self._header is None else _UNITS.unpack_from(self._header, _UNITS_AT)
        return dict(zip(("runs", "fewest_units", "most_units"), units, strict=True))

    @property
    def waits(self) -> str:
        """How the next run waits for its turn."""
        return WAITS[self._reader.state]

    def read(self) -> None:
        """Take what was reported since."""
        beats = self._reader.beats(self._next)
        self.lost += beats.lost
        self._next, self._open = beats.head, None
        for ended, resumed in beats.records:
            if resumed:
                self._gaps.append((ended, resumed))
            else:  # only the latest can be open, and it is read again
                self._next, self._open = beats.head - 1, ended

    def forget(self) -> None:
        """Begin anew: gaps that are over belong to no window."""
        self._next = max(self._next, self._reader.head - 1)
        self.read()
        self._gaps, self.lost = [], 0

    def inside(self, open_ns: int, close_ns: int) -> list[Gap]:
        """Every gap in the window, cut at its edges; one that is not over yet lasts until the window's close."""
        gaps = [*self._gaps, *([] if self._open is None else [(self._open, close_ns)])]
        cut = [(max(begin, open_ns), min(end, close_ns)) for begin, end in gaps]
        return [(begin, end) for begin, end in cut if begin < end]

    def begun(self, open_ns: int, close_ns: int) -> list[Gap]:
        """Every whole gap after which a run began inside the window."""
        return [gap for gap in self._gaps if open_ns <= gap[1] <= close_ns]


def samples(kept: Mapping[str, Restarts | None], open_ns: int, close_ns: int) -> list[Sample]:
    """Return everything that was read about the restarts of these members inside one window."""
    read = []
    for name, restarts in kept.items():
        if restarts is not None and restarts.in_slices:
            read += _samples(name, restarts, open_ns, close_ns)
    return read


def reasons(read: Sequence[Sample], seconds: float, members: Mapping[str, Member], limit: float) -> list[Reason]:
    """Name the antagonists that were absent for too much of a window; a lead's gaps are part of its runs."""
    found = []
    for name, absent in [
        (sample.subject, sample.value) for sample in read if (sample.source, sample.metric) == (SOURCE, "restart_gap_s")
    ]:
        if (member := members.get(name)) is None or member.role != "antagonist":
            continue
        if absent is None:
            found.append(f"{name} was restarted so often that how long it was absent is not known")
        elif absent > limit * seconds:
            found.append(
                f"{name} was absent for {absent / seconds:.1%} (limit {limit:.1%}; give it longer runs,"
                " or raise limits.restart_gap)"
            )
    return [Reason(ReasonKind.RESTART_GAP, detail) for detail in found]


def _samples(name: str, restarts: Restarts, open_ns: int, close_ns: int) -> list[Sample]:
    gaps = [(end - begin) / 1e9 for begin, end in restarts.inside(open_ns, close_ns)]
    begun = restarts.begun(open_ns, close_ns)
    lost = restarts.lost
    note = f"{lost} restarts were overwritten before they were read" if lost else restarts.waits
    sums = {"restarts": float(len(begun)), "restart_gap_s": sum(gaps), "longest_restart_gap_s": max(gaps, default=0.0)}
    return [
        *(Sample(close_ns, SOURCE, name, metric, None if lost else value, note) for metric, value in sums.items()),
        # Where its initialisation begins: a run that is new is not yet doing what it was chosen for.
        *(Sample(end, SOURCE, name, "run_begins_after_s", (end - begin) / 1e9) for begin, end in begun),
    ]


# Bounds how many processes and threads a member may have, where there is a pids controller: a fork bomb ends there.

TASKS = 4096  # generous: what a member needs is a few times its CPUs


class TaskBound:
    """The bounds of a launch's members, by the controller of version 2 or else by groups of version 1."""

    def __init__(self, name: str) -> None:
        self._root: Path | None = None
        if home := cgroups.find_pids_home():
            with contextlib.suppress(CastmatesError):  # a plain user's
                self._root = cgroups.make(home, name)

    def adopt(self, group: Path, pids: Iterable[int]) -> None:
        """Bound a member that stands still in its group of version 2."""
        if cgroups.bound_tasks(group, TASKS) or self._root is None:
            return
        own = cgroups.make(self._root, group.name)
        cgroups.bound_tasks(own, TASKS)
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                cgroups.move(own, pid)

    def groups(self) -> list[Path]:
        """List what was made for this alone."""
        return [] if self._root is None else [self._root]

    def close(self) -> None:
        """Remove what was made; its processes must have ended."""
        if self._root is not None:
            cgroups.remove(self._root)


def bounding_group(pid: int) -> Path | None:
    """Find the group that bounds a member; None where nothing of ours does."""
    for place in (cgroups.unified, cgroups.pids_of_version_1):
        group = cgroups.group_of(pid, place)
        if group and group.parent.name.startswith("castmates.") and (group / "pids.events").exists():
            return group
    return None


def refusal(group: Path | None) -> str:
    """Return a sentence where a member wanted more than it may have, else ""."""
    if group is None or not cgroups.refused_tasks(group):
        return ""
    return f"wanted more than {TASKS} processes and threads at a time, as a fork bomb does"
