"""The states of threads in the trace of a kernel, from the switches of all CPUs and the wake-ups.

A state lasts from a thread's first event to its last, or the end of the trace; where a switch is missing there is none,
and none that events may have ended that were lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from castmates.timeline.importers.kernel import DEAD, DISK, RUNS
from castmates.timeline.importers.lines import Ints
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
