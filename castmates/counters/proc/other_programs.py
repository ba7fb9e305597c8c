"""Who else took time on the CPUs of the launch, or around them, while a window was open.

All processes are looked at before the opening and after the close of a window, and only the few that ran in between
are looked into. It names; the time of the CPUs themselves shows how much others took.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.linux.host import newest_number
from castmates.linux.processes import (
    TICK_S,
    cpu_ns_of_processes,
    numbers,
    parse_stat,
    stat_line,
    thread_stat_line,
    threads_of,
)
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


class Seen(NamedTuple):
    """A process as it was when it had used so much time of CPUs."""

    cpu_ns: int | None  # None where the kernel tells it of nobody else
    parent: int
    line: bytes  # of /proc/<pid>/stat


Table = dict[int, Seen]  # by number


class Processes:
    """All processes of the host, looked at again and again.

    The clock of one costs a tenth of what its stat file costs, which stays as it is while the process sleeps.
    """

    def __init__(self, watched: Collection[int]) -> None:
        self._watched = frozenset(watched)
        self._elsewhere: set[int] = set()  # kernel threads that are bound to other CPUs
        self._known: Table = {}
        self._numbers: list[int] = []  # the newest one at each of the last two looks
        self._clocks = cpu_ns_of_processes([1]) != [None]

    def look(self) -> Table:
        """Read those that are new or have run; what they were before stays as it was returned then."""
        table, new = dict(self._known), self._newcomers()
        pids, before = [*table, *new], [seen.cpu_ns for seen in table.values()] + [None] * len(new)
        clocks = cpu_ns_of_processes(pids)
        ran = [(pid, now) for pid, now, then in zip(pids, clocks, before, strict=True) if now != then or now is None]
        gone = set[int]()
        for pid, used in ran:
            # One without a clock has ended, or is a thread: those have numbers of the same series.
            seen = None if used is None and self._clocks else self._read(pid, used)
            if seen:
                table[pid] = seen
            elif table.pop(pid, None):
                gone.add(pid)
        if gone:  # another parent takes their children, who may sleep on
            orphans = [pid for pid, seen in table.items() if seen.parent in gone]
            table |= {pid: seen for pid in orphans if (seen := self._read(pid, table[pid].cpu_ns))}
        self._known = table
        return dict(table)

    def _newcomers(self) -> set[int]:
        """Those that may be new: numbers since the last look but one, as they are given before a process is seen."""
        newest, numbered = newest_number() if self._clocks else None, self._numbers
        self._numbers = [*numbered[-1:], newest] if newest else []
        if len(numbered) == 2 and newest and 0 <= newest - numbered[0] <= len(self._known):
            new = set(range(numbered[0] + 1, newest + 1))
        else:
            new = set(numbers())
            self._elsewhere &= new
        return new - self._known.keys() - self._elsewhere

    def _read(self, pid: int, used: int | None) -> Seen | None:
        try:
            line = stat_line(pid)
        except OSError:
            return None
        if pid not in self._known and _bound_elsewhere(pid, line, self._watched):
            self._elsewhere.add(pid)
            return None
        return Seen(used, int(parse_stat(line)[1][1]), line)


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
        self._processes = Processes(frozenset[int]().union(*self._places.values()))

    def attach(self, members: Mapping[str, int]) -> None:
        """Remember who is no culprit, and who there is."""
        super().attach(members)
        self._processes.look()

    def _look(self) -> Table:
        return self._processes.look()

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
        changed = [pid for pid, seen in closing.items() if opening.get(pid) is not seen and pid != os.getpid()]
        return [pid for pid in changed if not self._is_a_members(pid, closing)]

    def _is_a_members(self, pid: int, table: Table) -> bool:
        """Check whether it descends from a member, or lives in a member's session."""
        leaders = {*self._members.values()}  # each leads its own session
        while pid in table:
            entry = Entry.of(table[pid].line)
            if pid in leaders or entry.session in leaders:
                return True
            pid = entry.parent
        return False


Taken = tuple[str, float, dict[int, float]]  # who, seconds, and its shares by CPU


def _took(pid: int, opening: Table, closing: Table, inherited: int) -> Iterator[Taken]:
    """Yield what one process took, and what its children that ended did, less what they had taken before."""
    after = Entry.of(closing[pid].line)
    before = Entry.of(opening[pid].line) if pid in opening else None
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
        entry = heir = Entry.of(opening[pid].line)
        while heir.parent in opening and heir.parent not in closing:
            heir = Entry.of(opening[heir.parent].line)
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


def _plain(line: bytes) -> str:
    """Return the program's name, in which anything may stand, without what separates reasons."""
    name = line[line.index(b"(") + 1 : line.rindex(b")")].decode(errors="replace")
    return "".join("_" if letter in ";:" or not letter.isprintable() else letter for letter in name)
