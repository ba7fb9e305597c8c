"""Events of a kernel as columns, whichever tracer wrote them: what its readers fill, and timelines are made from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from castmates import __version__
from castmates.timeline.importers.lines import Columns, Ints, Words, codes, integers
from castmates.timeline.states import (
    BLOCKED,
    GONE,
    LEAVES,
    NONE,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    UNWOKEN,
    Array,
    chains,
    is_first,
    joined,
    rows_of,
)
from castmates.timeline.syscalls import SOFT

RUNS, SLEEPS, DISK, DEAD = range(4)  # how a thread left its CPU
IRQ, SOFTIRQ = range(2)
WAKING, WAKEUP, STARTED = range(3)  # the waker's part of a wake-up, its end on the other CPU, and a first start
BEGIN, END, COUNTER, NOTE = range(4)  # kinds of marks that programs make
_WHEN = {"n": np.int64, "t": np.int64, "cpu": np.int16}  # the place in the trace; nanoseconds; -1 for no CPU
_WHO = _WHEN | {"tid": np.int32, "comm": np.int32}
Rows = dict[str, Ints]  # of some events: these five columns, of the thread that noted them
Named = tuple[pa.Array, pa.Array]  # number and name of a thread in each event, as texts


class KernelEvents:
    """What was read so far; names are numbers in `words`."""

    def __init__(self) -> None:
        self.words, self.account = Words(), Account()
        self.switches = Columns(**_WHO, state=np.int8, next=np.int32, next_comm=np.int32)
        self.wakes = Columns(**_WHO, by=np.int32, waker=np.int32, kind=np.int8)  # cpu: where it will run; by: a name
        self.migrations = Columns(**_WHO, origin=np.int16)  # cpu: where to
        self.calls = Columns(**_WHO, name=np.int32, enters=np.bool_, value=np.float64)
        self.interrupts = Columns(**_WHEN, kind=np.int8, name=np.int32, enters=np.bool_)
        self.faults = Columns(**_WHO, name=np.int32)
        self.marks = Columns(**_WHO, kind=np.int8, name=np.int32, group=np.int32, value=np.float64)
        self.lost = Columns(**_WHEN, count=np.int64)  # -1: not counted; t: when events go on
        self.processes: dict[int, int] = {}  # of threads

    def switch(self, rows: Rows, left: Named, state: pa.Array, came: Named) -> None:
        """Threads leave CPUs to others."""
        numbers, letters = codes(state)
        states = np.array([state_of(each) for each in letters] or [0], np.int8)
        came_tid, came_comm = self._named(came).values()
        self.switches.add(**rows | self._named(left), state=states[numbers], next=came_tid, next_comm=came_comm)

    def wake(self, rows: Rows, kind: int, woken: Named, cpu: pa.Array) -> None:
        """Threads are woken, to run on a CPU; whoever notes it wakes them."""
        where = self._named(woken) | {"cpu": integers(cpu)}
        self.wakes.add(**rows | where, by=rows["comm"], waker=rows["tid"], kind=kind)

    def migrate(self, rows: Rows, moved: Named, origin: pa.Array, cpu: pa.Array) -> None:
        """Threads move from one CPU to another."""
        self.migrations.add(**rows | self._named(moved) | {"cpu": integers(cpu)}, origin=integers(origin))

    def interrupt(self, rows: Rows, kind: int, enters: bool, line: pa.Array, name: pa.Array) -> None:
        """Interrupts begin or end: by name, or by line where they have none; soft ones by their vector."""
        if kind == SOFTIRQ:
            numbers, vectors = codes(line)
            names = np.array([self.words.number(softirq_of(each)) for each in vectors] or [0], np.int64)[numbers]
        else:
            names = self.words.take(pc.if_else(pc.equal(name, ""), line, name))
        self.interrupts.add(n=rows["n"], t=rows["t"], cpu=rows["cpu"], kind=kind, name=names, enters=enters)

    def _named(self, thread: Named) -> dict[str, Ints]:
        tid, comm = thread
        return {"tid": integers(tid), "comm": self.words.take(comm)}


def state_of(letters: str) -> int:
    """How a thread left its CPU, by the letters of ftrace, perf and LTTng: S, R+, D|K, Z …; a number is LTTng's."""
    if letters.lstrip("-").isdigit():
        number = int(letters) & 0xFF
        return RUNS if number == 0 else DISK if number & 2 else DEAD if number & (16 | 32) else SLEEPS
    first = letters[:1]
    return {"R": RUNS, "D": DISK, "X": DEAD, "Z": DEAD, "x": DEAD}.get(first, SLEEPS)


def softirq_of(vector: str) -> str:
    """The name of a soft interrupt by its number, as those of perf's recordings are called."""
    number = int(vector) if vector.isdigit() else -1
    return SOFT[number] if 0 <= number < len(SOFT) else f"softirq {vector}"


# What an importer read of its source, and the record of the trace: every event is used, or left out by name.


class Account:
    """Counts events by name; `read` is counted where events are found, apart from what is done with them."""

    def __init__(self) -> None:
        self.read = 0
        self.lost = 0  # that the recorder reports
        self.used: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def use(self, name: str, count: int = 1) -> None:
        """So many events of this name are in the timeline, or end something in it."""
        if count:
            self.used[name] += count

    def leave(self, name: str, count: int = 1) -> None:
        """So many events of this name are not in the timeline; the name says why where that is not plain."""
        if count:
            self.left_out[name] += count

    def leave_used(self, name: str, reason: str, count: int) -> None:
        """So many events that were taken up turned out to be of no use."""
        if count:
            self.used[name] -= count
            self.left_out[f"{name} {reason}"] += count
            self.used = +self.used

    def source(self, name: str, size: int, **more: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """A line of `sources` in the record of a trace."""
        return {
            "name": name,
            "events": dict(self.used),
            "read": self.read,
            "left_out": dict(self.left_out),
            "lost": self.lost,
            "bytes": size,
            "reason": "",
            **more,
        }


IMPORTED = "imported"  # the status of such a trace: nothing of it was recorded here


def record(
    path: Path,
    name: str,
    account: Account,
    clock: str,
    size: int,
    missing: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The record of a trace that another program made."""
    return {
        "format": 1,
        "status": IMPORTED,
        "reason": "",
        "study": "",
        "mix": path.name,
        "partition": "",
        "lead": "",
        "members": {},
        "platform": IMPORTED,
        "imported": {"from": path.name, "by": name, "clock": clock},
        "sources": [account.source(name, size, clock=clock)],
        "clocks": [],
        "missing": {words: [] for words in missing},
        "versions": {"castmates": __version__},
    } | more


# The states of threads in the trace of a kernel, from the switches of all CPUs and the wake-ups.
#
# A state lasts from a thread's first event to its last, or the end of the trace; where a switch is missing there is
# none, and none that events may have ended that were lost.

Table = Array  # of named columns
IDLE = 0  # the thread that runs where none does
EVENT = np.dtype([
    ("group", "i8"), ("t", "i8"), ("state", "i1"), ("cpu", "i4"),  # as of any edge
    ("n", "i8"),  # its place in the trace, twice: who leaves a CPU does so before who comes
    ("other", "i8"),  # name of who has the CPU after it; NONE where it runs or sleeps
    ("is_disk", "?"),  # left without being interruptible
], align=True)  # fmt: skip
"""What changes the state of a thread, whose number is the group."""
STATE = np.dtype([
    ("tid", "i8"), ("t0", "i8"), ("t1", "i8"), ("state", "i1"),
    ("cpu", "i8"),  # where it runs, ran last, or is going to run
    ("other", "i8"), ("is_disk", "?"),
    ("resumes", "?"),  # its end shows that it went on until then, whatever was before
], align=True)  # fmt: skip
"""What a thread did from one moment to another."""


@dataclass(frozen=True)
class States:
    """Intervals of threads."""

    rows: Array  # of STATE
    unknown: int  # stretches in which a switch is missing: they have no state
    cut: int = 0  # in which events were lost


def states_of(switches: Table, wakes: Table, end: int, gaps: "Mapping[int, Gaps] | None" = None) -> States:
    """The states of all threads but the idle one; `end` is the end of the trace, at which the last states end.

    `gaps` are those of each CPU in which events were lost.
    """
    events = _events(switches, wakes)
    links = chains(events, end)
    own, state, follows = events.take(links["edge"]), links["state"], links["next_state"] != NONE
    rows = rows_of(STATE, **{name: links[name] for name in ("t0", "t1", "state", "cpu")}, tid=links["group"],
                   other=own["other"], is_disk=own["is_disk"])  # fmt: skip
    waits = np.isin(state, (RUNNABLE, PREEMPTED)) & follows
    rows["cpu"][waits] = links["next_cpu"][waits]
    runnable = state == RUNNABLE
    rows["other"][runnable] = _who_runs(switches, rows["cpu"][runnable], rows["t0"][runnable])
    leaves = np.isin(links["next_state"], LEAVES) & (state == RUNNING) & (links["next_cpu"] == rows["cpu"])
    rows["resumes"] = leaves | ((state == BLOCKED) & (links["next_state"] == RUNNABLE))
    kept = (rows["t1"] > rows["t0"]) & (state != GONE) & ~links["missing"]
    rows = joined([_first(own.compress(is_first(links["group"])), switches), rows.compress(kept)])
    return _without_gaps(States(rows, int(links["missing"].sum())), gaps or {})


def _without_gaps(states: States, gaps: "Mapping[int, Gaps]") -> States:
    """States end where events were lost: of a CPU who ran there, and of any CPU who waited, which any CPU may end."""
    if not gaps:
        return states
    rows = states.rows
    runs = rows["state"] == RUNNING
    inside, until, again = of_all(gaps).cut(rows["t0"], rows["t1"])
    for cpu in np.unique(rows["cpu"][runs]).tolist():
        own = np.flatnonzero(runs & (rows["cpu"] == cpu))
        inside[own], until[own], again[own] = gaps.get(cpu, NOTHING).cut(rows["t0"][own], rows["t1"][own])
    before, after = rows.copy(), rows.copy()
    before["t1"], after["t0"] = until, again
    for part in (before, after):  # until then nobody woke it
        part["state"][inside & (rows["state"] == UNWOKEN)] = BLOCKED
    rest = inside & rows["resumes"] & (again < rows["t1"])
    return States(
        joined([before.compress(until > rows["t0"]), after.compress(rest)]), states.unknown, int(inside.sum())
    )


def _events(switches: Table, wakes: Table) -> Array:
    """What changes the state of a thread, by thread and in the order of the trace."""
    out, into, woken = switches["tid"] != IDLE, switches["next"] != IDLE, wakes["tid"] != IDLE
    left = switches["state"][out]
    parts = [
        rows_of(EVENT, group=switches["tid"][out], n=2 * switches["n"][out], t=switches["t"][out],
                cpu=switches["cpu"][out], is_disk=left == DISK,
                state=np.select([left == RUNS, left == DEAD], [PREEMPTED, GONE], BLOCKED),
                other=np.where(left == RUNS, switches["next_comm"][out], NONE)),
        rows_of(EVENT, group=switches["next"][into], n=2 * switches["n"][into] + 1, t=switches["t"][into],
                cpu=switches["cpu"][into], state=RUNNING, other=NONE),
        rows_of(EVENT, group=wakes["tid"][woken], n=2 * wakes["n"][woken], t=wakes["t"][woken],
                cpu=wakes["cpu"][woken], state=RUNNABLE, other=NONE),
    ]  # fmt: skip
    events = joined(parts)
    return events.take(np.lexsort((events["n"], events["t"], events["group"])))


def _who_runs(switches: Table, cpu: Array, t: Array) -> Ints:
    """The name of who runs on a CPU at a moment; NONE where that is not known."""
    found = np.full(len(t), NONE, np.int64)
    for number in np.unique(cpu):
        own, asked = np.flatnonzero(switches["cpu"] == number), np.flatnonzero(cpu == number)
        place = np.searchsorted(switches["t"][own], t[asked], "right") - 1
        if len(own):
            names = np.where(place >= 0, switches["next_comm"][own][np.maximum(place, 0)], switches["comm"][own][0])
            found[asked] = names
    return found


def _first(events: Array, switches: Table) -> Array:
    """Threads that run at the beginning: their first event is that they leave the CPU that nobody left before."""
    cpus, rows = np.unique(switches["cpu"], return_index=True)
    earliest = dict(zip(switches["tid"][rows].tolist(), cpus.tolist(), strict=True))
    begin = int(switches["t"].min()) if len(switches) else 0
    ran = np.isin(events["state"], LEAVES) & (events["t"] > begin)
    ran &= np.array([earliest.get(tid, NONE) for tid in events["group"].tolist()], np.int64) == events["cpu"]
    own = events.compress(ran)
    return rows_of(STATE, tid=own["group"], t0=begin, t1=own["t"], state=RUNNING, cpu=own["cpu"], other=NONE,
                   resumes=True)  # fmt: skip


@dataclass(frozen=True)
class Gaps:
    """Where a tracer lost events: spans in order, none of which overlap."""

    begin: Ints
    end: Ints

    def cut(self, t0: Ints, t1: Ints) -> tuple[npt.NDArray[np.bool_], Ints, Ints]:
        """Which intervals have a gap in them; when the first one begins there, and the last one ends."""
        if not len(self.begin):
            return np.zeros(len(t0), bool), t1, t1
        first = np.searchsorted(self.end, t0, "right")
        last = np.maximum(np.searchsorted(self.begin, t1, "left") - 1, 0)
        place = np.minimum(first, len(self.begin) - 1)
        inside = (first < len(self.begin)) & (self.begin[place] < t1)
        until = np.where(inside, np.maximum(self.begin[place], t0), t1)
        return inside, until, np.where(inside, np.minimum(self.end[last], t1), t1)


NOTHING = Gaps(np.empty(0, np.int64), np.empty(0, np.int64))


def gaps_of(lost: Table, tables: Sequence[Table]) -> dict[int, Gaps]:
    """By CPU: from its last event before each loss until the loss, which is noted once its events go on."""
    found = {}
    for cpu in np.unique(lost["cpu"]).tolist():
        end = np.sort(lost["t"][lost["cpu"] == cpu]).astype(np.int64)
        seen = np.sort(np.concatenate([table["t"][table["cpu"] == cpu] for table in tables])).astype(np.int64)
        place = np.searchsorted(seen, end, "left") - 1
        begin = np.where(place >= 0, seen[np.maximum(place, 0)] if len(seen) else 0, 0)
        found[int(cpu)] = _joined(begin, end)
    return found


def of_all(gaps: Mapping[int, Gaps]) -> Gaps:
    """Those of any CPU."""
    begins, ends = [one.begin for one in gaps.values()], [one.end for one in gaps.values()]
    return _joined(np.concatenate([NOTHING.begin, *begins]), np.concatenate([NOTHING.end, *ends]))


def _joined(begin: Ints, end: Ints) -> Gaps:
    order = np.lexsort((end, begin))
    begin, end = begin[order], np.maximum.accumulate(end[order])
    starts = np.append(True, begin[1:] > end[:-1])[: len(begin)]
    return Gaps(begin[starts], end[np.roll(starts, -1)])
