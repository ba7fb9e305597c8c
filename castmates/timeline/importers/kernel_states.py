"""The states of threads from the switches of all CPUs and the wake-ups: running, runnable, preempted, blocked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.importers.kernel import DEAD, DISK, RUNS
from castmates.timeline.importers.kernel_gaps import Gaps, of_all
from castmates.timeline.importers.lines import Ints
from castmates.timeline.perf.states import BLOCKED, PREEMPTED, RUNNABLE, RUNNING, UNKNOWN

Array = npt.NDArray[Any]
Table = Mapping[str, Array]
GONE = 4  # after a thread's end
IDLE = 0  # the thread that runs where none does
NOBODY = -1


@dataclass(frozen=True)
class States:
    """Intervals of threads, without gaps from a thread's first event to its last where no switch is missing."""

    tid: Ints
    t0: Ints
    t1: Ints
    state: Ints  # a place in perf's NAMES
    cpu: Ints  # where it runs, ran last, or is going to run
    other: Ints  # name of who has the CPU meanwhile; -1 where it runs or is blocked
    is_disk: npt.NDArray[np.bool_]  # blocked without being interruptible
    resumes: npt.NDArray[np.bool_]  # its end shows that it went on until then, whatever was before
    unknown: int  # stretches in which a switch is missing: they have no state
    cut: int = 0  # in which events were lost


def states_of(switches: Table, wakes: Table, end: int, gaps: Mapping[int, Gaps] | None = None) -> States:
    """The states of all threads but the idle one; `end` is the end of the trace, at which the last states end.

    `gaps` are those of each CPU in which events were lost.
    """
    return _without_gaps(_states_of(switches, wakes, end), gaps or {})


def _states_of(switches: Table, wakes: Table, end: int) -> States:
    edges = _edges(switches, wakes)
    rows = _effective(edges)
    edges = {name: column[rows] for name, column in edges.items()}
    tid, t, state = edges["tid"], edges["t"], edges["state"]
    same = np.r_[tid[1:] == tid[:-1], False]
    until = np.where(same, np.r_[t[1:], 0], end)
    later_cpu = np.where(same, np.r_[edges["cpu"][1:], 0], edges["cpu"])
    cpu = np.where((state == RUNNABLE) | (state == PREEMPTED), later_cpu, edges["cpu"])
    waits = state == RUNNABLE
    other = edges["other"].copy()
    other[waits] = _who_runs(switches, cpu[waits], t[waits])
    after = np.where(same, np.r_[state[1:], RUNNABLE], RUNNABLE)
    leaves = np.isin(after, (PREEMPTED, BLOCKED, GONE))
    unknown = same & ((leaves & (state != RUNNING)) | ((after == RUNNING) & (state == RUNNING)))  # a switch is missing
    keep = (until > t) & (state != GONE) & ~unknown
    first = _first(edges, switches)
    leaves_here = leaves & (state == RUNNING) & (later_cpu == cpu)
    resumes = same & (leaves_here | ((state == BLOCKED) & (after == RUNNABLE)))
    state = np.where(same & (state == BLOCKED) & (after == RUNNING), UNKNOWN, state)  # its wake-up is not in the trace
    columns = [tid, t, until, state, cpu, other, edges["is_disk"], resumes]
    whole = [np.r_[before, column[keep]] for before, column in zip(first, columns, strict=True)]
    tid, t, until, state, cpu, other = (column.astype(np.int64) for column in whole[:6])
    return States(tid, t, until, state, cpu, other, whole[6].astype(bool), whole[7].astype(bool), int(unknown.sum()))


def _without_gaps(states: States, gaps: Mapping[int, Gaps]) -> States:
    """States end where events were lost: of a CPU who ran there, and of any CPU who waited, which any CPU may end."""
    if not gaps:
        return states
    runs = states.state == RUNNING
    inside, until, again = of_all(gaps).cut(states.t0, states.t1)
    for cpu in np.unique(states.cpu[runs]).tolist():
        rows = np.flatnonzero(runs & (states.cpu == cpu))
        nothing = Gaps(np.empty(0, np.int64), np.empty(0, np.int64))
        inside[rows], until[rows], again[rows] = gaps.get(cpu, nothing).cut(states.t0[rows], states.t1[rows])
    rest = np.flatnonzero(inside & states.resumes & (again < states.t1))
    kept = np.flatnonzero(until > states.t0)
    rows = np.r_[kept, rest]
    columns = {name: getattr(states, name)[rows] for name in ("tid", "state", "cpu", "other", "is_disk", "resumes")}
    columns["state"][inside[rows] & (columns["state"] == UNKNOWN)] = BLOCKED  # until then nobody woke it
    begins, ends = np.r_[states.t0[kept], again[rest]], np.r_[until[kept], states.t1[rest]]
    return replace(states, **columns, t0=begins, t1=ends, cut=int(inside.sum()))


def _edges(switches: Table, wakes: Table) -> dict[str, Array]:
    """What changes the state of a thread, by thread and in the order of the trace."""
    out, into = switches["tid"] != IDLE, switches["next"] != IDLE
    left = switches["state"][out]
    gone = np.select([left == RUNS, left == DEAD], [PREEMPTED, GONE], BLOCKED)
    wake, count = wakes["tid"] != IDLE, int(into.sum())
    nobody = np.full(count, NOBODY)
    parts = {
        "tid": [switches["tid"][out], switches["next"][into], wakes["tid"][wake]],
        "n": [2 * switches["n"][out], 2 * switches["n"][into] + 1, 2 * wakes["n"][wake]],
        "t": [switches["t"][out], switches["t"][into], wakes["t"][wake]],
        "cpu": [switches["cpu"][out], switches["cpu"][into], wakes["cpu"][wake]],
        "state": [gone, np.full(count, RUNNING), np.full(int(wake.sum()), RUNNABLE)],
        "other": [np.where(left == RUNS, switches["next_comm"][out], NOBODY), nobody, np.full(int(wake.sum()), NOBODY)],
        "is_disk": [left == DISK, np.zeros(count, bool), np.zeros(int(wake.sum()), bool)],
    }
    edges = {name: np.concatenate(part) for name, part in parts.items()}
    order = np.lexsort((edges["n"], edges["t"], edges["tid"]))
    return {name: column[order] for name, column in edges.items()}


def _effective(edges: Mapping[str, Array]) -> Ints:
    """Edges that change a state: a wake-up does so only of a thread that is blocked, and only once."""
    tid, state = edges["tid"], edges["state"]
    wake = state == RUNNABLE
    place = np.maximum.accumulate(np.where(wake, -1, np.arange(len(state)))) if len(state) else np.empty(0, np.int64)
    first = np.r_[True, tid[1:] != tid[:-1]] if len(tid) else np.empty(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(tid)), 0)) if len(tid) else place
    known = place >= start
    before = np.where(known, state[np.maximum(place, 0)], BLOCKED)
    repeated = wake & np.r_[False, wake[:-1]] & ~first  # waking, then wakeup
    return np.flatnonzero(~wake | ((before == BLOCKED) & ~repeated) | ((before == GONE) & ~repeated))


def _who_runs(switches: Table, cpu: Array, t: Array) -> Ints:
    """The name of who runs on a CPU at a moment; -1 where that is not known."""
    found = np.full(len(t), NOBODY, np.int64)
    for number in np.unique(cpu):
        own, asked = np.flatnonzero(switches["cpu"] == number), np.flatnonzero(cpu == number)
        place = np.searchsorted(switches["t"][own], t[asked], "right") - 1
        if len(own):
            names = np.where(place >= 0, switches["next_comm"][own][np.maximum(place, 0)], switches["comm"][own][0])
            found[asked] = names
    return found


def _first(edges: Mapping[str, Array], switches: Table) -> list[Array]:
    """Threads that run at the beginning: their first event is that they leave the CPU that nobody left before."""
    tid, state = edges["tid"], edges["state"]
    first = np.flatnonzero(np.r_[True, tid[1:] != tid[:-1]]) if len(tid) else np.empty(0, np.int64)
    earliest = {}
    for number in np.unique(switches["cpu"]):
        row = int(np.argmax(switches["cpu"] == number))
        earliest[int(switches["tid"][row])] = int(number)
    begin = int(switches["t"].min()) if len(switches["t"]) else 0
    rows = [
        row
        for row in first[np.isin(state[first], (PREEMPTED, BLOCKED, GONE))].tolist()
        if earliest.get(int(tid[row])) == int(edges["cpu"][row]) and edges["t"][row] > begin
    ]
    count = len(rows)
    fixed = (np.full(count, begin), edges["t"][rows], np.full(count, RUNNING), edges["cpu"][rows])
    return [tid[rows], *fixed, np.full(count, NOBODY), np.zeros(count, bool), np.ones(count, bool)]
