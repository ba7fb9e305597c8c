"""Who else took time on the CPUs of the launch, or around them, while a window was open.

The stat files of all processes are read before the opening and after the close of a window, and only the few lines
that differ are looked into. It names; the time of the CPUs themselves shows how much others took.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.linux.processes import TICK_S, numbers, parse_stat, stat_line, thread_stat_line, threads_of
from castmates.protocols import Sample

MOST_NAMED = 3  # at each place
KERNEL_THREAD = 0x00200000  # PF_KTHREAD


class Entry(NamedTuple):
    """What is needed of one stat line; times in ticks."""

    name: str
    parent: int
    session: int
    flags: int
    own: int
    waited: int  # of children that it has waited for
    threads: int
    born: int
    cpu: int  # where its first thread ran last

    @classmethod
    def of(cls, line: bytes) -> "Entry":
        """Read a line of /proc/<pid>/stat, or of one of its threads."""
        f = parse_stat(line)[1]
        parent, session, flags, user, kernel, user_waited, kernel_waited, threads, born, cpu = (
            int(f[column]) for column in (1, 3, 6, 11, 12, 13, 14, 17, 19, 36)
        )
        times = user + kernel, user_waited + kernel_waited
        return cls(_plain(line), parent, session, flags, *times, threads, born, cpu)


Table = dict[int, bytes]  # pid -> its stat line


class Culprits(BetweenEdges[Table]):
    """Names those outside of the launch who took time at the places that should be the launch's, or quiet."""

    name = "culprits"

    def __init__(
        self,
        places: Mapping[str, Collection[int]],
        most_named: int = MOST_NAMED,
        is_ours: Callable[[int], bool] = lambda _pid: False,
    ) -> None:
        self._places = {place: frozenset(cpus) for place, cpus in places.items()}
        self._most_named = most_named
        self._is_ours = is_ours  # for members' processes that are no longer anybody's children
        self._elsewhere: set[int] = set()  # kernel threads that are bound to other CPUs

    def attach(self, members: Mapping[str, int]) -> None:
        """Remember who is no culprit, and which kernel threads can be none."""
        super().attach(members)
        watched = frozenset().union(*self._places.values())
        self._elsewhere = {pid for pid, line in _read(set()).items() if _bound_elsewhere(pid, line, watched)}

    def _look(self) -> Table:
        return _read(self._elsewhere)

    def _between(self, opening: Table, closing: Table) -> list[Sample]:
        """Name, for each place, those who took most."""
        now = time.monotonic_ns()
        takers_of: dict[str, list[tuple[float, str]]] = {place: [] for place in self._places}
        strays = dict.fromkeys(self._places, 0.0)
        inherited = _inherited(opening, closing)
        for pid in self._others(opening, closing):
            is_stray = self._is_ours(pid)
            for who, seconds, shares in _took(pid, opening, closing, inherited.get(pid, 0)):
                for place, cpus in self._places.items():
                    here = seconds * sum(share for cpu, share in shares.items() if cpu in cpus)
                    if is_stray:
                        strays[place] += here
                    elif here >= TICK_S:
                        takers_of[place].append((here, who))
        return [Sample(now, self.name, place, "strays_s", seconds) for place, seconds in strays.items() if seconds] + [
            Sample(now, self.name, place, "foreign_s", seconds, who)
            for place, takers in takers_of.items()
            for seconds, who in sorted(takers, reverse=True)[: self._most_named]
        ]

    def about(self) -> dict[str, str]:
        """Describe what is read and how sure it is."""
        return {
            "strays": "members' processes that left their family count as the members' own",
            "foreign time": "/proc/<pid>/stat of all processes, in ticks, for the CPUs where their threads ran last",
            "unseen": "what lies outside of our PID namespace, and processes that nobody waited for",
        }

    def _others(self, opening: Table, closing: Table) -> list[int]:
        """Return who did anything, except the members and this process, whose times are known. Its children count."""
        changed = [pid for pid, line in closing.items() if opening.get(pid) != line and pid != os.getpid()]
        return [pid for pid in changed if not self._is_a_members(pid, closing)]

    def _is_a_members(self, pid: int, table: Table) -> bool:
        """Check whether it descends from a member, or lives in a member's session."""
        leaders = {*self._members.values()}  # each leads its own session
        while pid in table:
            entry = Entry.of(table[pid])
            if pid in leaders or entry.session in leaders:
                return True
            pid = entry.parent
        return False


Taken = tuple[str, float, dict[int, float]]  # who, seconds, and its shares by CPU


def _took(pid: int, opening: Table, closing: Table, inherited: int) -> Iterator[Taken]:
    """Yield what one process took, and what its children that ended did, less what they had taken before."""
    after = Entry.of(closing[pid])
    before = Entry.of(opening[pid]) if pid in opening else None
    if before is not None and before.born != after.born:
        before = None
    yield f"{after.name} (pid {pid})", (after.own - (before.own if before else 0)) * TICK_S, _ran_on(pid, after)
    waited = after.waited - (before.waited if before else 0) - inherited
    if waited > 0:
        yield f"children of {after.name} (pid {pid})", waited * TICK_S, _may_run_on(pid)


def _inherited(opening: Table, closing: Table) -> dict[int, int]:
    """Time from before the window of those who ended in it, by the ancestor that it may have come down to."""
    ticks: dict[int, int] = {}
    for pid in opening.keys() - closing.keys():
        entry = heir = Entry.of(opening[pid])
        while heir.parent in opening and heir.parent not in closing:
            heir = Entry.of(opening[heir.parent])
        ticks[heir.parent] = ticks.get(heir.parent, 0) + entry.own + entry.waited
    return ticks


def _ran_on(pid: int, entry: Entry) -> dict[int, float]:
    """Return the CPUs where its threads ran last, each weighed by the thread's own time so far."""
    if entry.threads <= 1:
        return {entry.cpu: 1.0}
    times: dict[int, int] = {}
    for tid in threads_of(pid):
        try:
            thread = Entry.of(thread_stat_line(pid, tid))
        except OSError:
            continue
        times[thread.cpu] = times.get(thread.cpu, 0) + thread.own
    total = sum(times.values())
    return {cpu: ticks / total for cpu, ticks in times.items()} if total else {entry.cpu: 1.0}


def _may_run_on(pid: int) -> dict[int, float]:
    """Children that are gone may have run wherever their parent may."""
    try:
        cpus = os.sched_getaffinity(pid)
    except OSError:
        return {}
    return dict.fromkeys(cpus, 1 / len(cpus))


def _bound_elsewhere(pid: int, line: bytes, watched: Collection[int]) -> bool:
    try:
        return bool(Entry.of(line).flags & KERNEL_THREAD) and not os.sched_getaffinity(pid) & set(watched)
    except OSError:
        return False


def _read(skipped: Collection[int]) -> Table:
    table = {}
    for pid in numbers():
        if pid in skipped:
            continue
        try:
            table[pid] = stat_line(pid)
        except OSError:
            continue
    return table


def _plain(line: bytes) -> str:
    """Return the program's name, in which anything may stand, without what separates reasons."""
    name = line[line.index(b"(") + 1 : line.rindex(b")")].decode(errors="replace")
    return "".join("_" if letter in ";:" or not letter.isprintable() else letter for letter in name)
