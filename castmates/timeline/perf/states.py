"""What each thread did at each moment: it ran, waited to run, or was blocked; a chain without gaps and overlaps.

A chain lasts from the begin of a stretch in which nothing was lost, or a thread's birth, until the end of either. Where
the recorder knows that all events were on from the begin of a stretch, the first event shows what was before it: who is
switched out has run, who is woken was blocked. What no event shows is unknown: the time before a first event that does
not, and a wait that ends without a wake-up: the thread was blocked, and then waited for a CPU, nobody saw since when.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.groups import Keys, People, Spans
from castmates.timeline.perf.reading import Recording
from castmates.timeline.perf.wakes import Wakes, wakes_of

Array = npt.NDArray[Any]
RUNNING, RUNNABLE, PREEMPTED, BLOCKED, UNKNOWN, UNWOKEN = range(6)
NAMES = ("running", "runnable", "preempted", "blocked", "unknown")
_ALL, _UNINTERRUPTIBLE, _DEAD = 0xFF, 0x02, 0x30  # bits of a thread's state as it is switched out; none: it can run
_NONE = -1
_SAME = 1  # the rank of perf's own record of a switch: behind the scheduler's event of the same moment


@dataclass(frozen=True)
class States:
    """All intervals, in the order of threads and times."""

    begins: Array
    ends: Array
    thread: Array
    group: Array  # thread, and stretch: thread * stretches + stretch
    state: Array
    cpu: Array
    next_tid: Array  # who came instead, as the switch has it; -1 where it does not show
    is_deep: Array  # blocked so that no signal ends it
    wake: Array  # of a blocked or runnable one, the place of its wake-up; -1 for none
    wakes: Wakes
    counts: dict[str, int]
    stretches: int

    def wake_thread(self) -> Array:
        """Of each wake-up that ended a wait, whom it woke."""
        found = np.full(len(self.wakes.time), -1)
        woken = self.wake >= 0
        found[self.wake[woken]] = self.thread[woken]
        return found


@dataclass(frozen=True)
class _Edges:
    """Switches in and out, each once, in the order of groups and times."""

    group: Array
    time: Array
    out: Array
    cpu: Array
    state: Array  # with what it was switched out; 0: still able to run
    next_tid: Array


@dataclass(frozen=True)
class _Known:
    """Of each group: when its stretch begins, and whether its thread was there and all events were on by then."""

    begins: Array
    since: Array  # when its stretch or its thread begins, whichever comes later
    opened: Array


def states_of(recording: Recording, people: People, spans: Spans, keys: Keys, end_of: Array) -> States:
    """Build the chains."""
    wakes = wakes_of(recording, people, spans, keys)
    edges = _edges(recording, people, spans)
    known = _known(recording, people, spans)
    parts = [*_between(edges, wakes, keys), *_last(edges, wakes, keys, end_of)]
    parts += _first(known, edges, wakes, keys, end_of)
    columns = _in_order(parts)
    columns = _in_order([columns, _gaps(columns, known)])
    stretches = max(1, len(spans.begins))
    thread = columns["group"] // stretches
    return States(**columns, thread=thread, wakes=wakes, counts=_counts(edges), stretches=stretches)


def _in_order(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """All intervals that take time, in the order of groups and times."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    kept = columns["ends"] > columns["begins"]
    order = np.lexsort((columns["begins"][kept], columns["group"][kept]))
    return {name: column[kept][order] for name, column in columns.items()}


def _gaps(columns: dict[str, Array], known: "_Known") -> dict[str, Array]:
    """Between the intervals of each group, and before its first one since its stretch or its thread began."""
    group, begins = columns["group"], columns["begins"]
    first = np.append(True, group[1:] != group[:-1])[: len(group)]
    since = np.where(first, known.since[group], np.roll(columns["ends"], 1))
    at = begins > since
    return _columns(since[at], begins[at], group[at], _all(at, UNKNOWN), _all(at, _NONE), _all(at, _NONE))


def _edges(recording: Recording, people: People, spans: Spans) -> _Edges:
    """Join the scheduler's events, which know why a thread leaves, with perf's own, which show when it comes."""
    switch, stretch = recording.switches, len(spans.begins)
    parts = [(switch["tid"], switch["time"], switch["out"], switch["cpu"], ~switch["preempted"] & _ALL, _SAME)]
    nexts = [np.full(len(switch["time"]), _NONE)]
    if (leaves := recording.samples.get("sched:sched_switch")) is not None:
        to, is_out = people.here(leaves["next_pid"]), np.ones(len(leaves["time"]), bool)
        parts.append((leaves["tid"], leaves["time"], is_out, leaves["cpu"], leaves["prev_state"] & _ALL, 0))
        nexts.append(to)
        if not len(switch["time"]):  # a recording of whole CPUs, in which each switch shows both threads
            parts.append((to, leaves["time"], ~is_out, leaves["cpu"], np.zeros(len(to), np.int64), 0))
            nexts.append(np.full(len(to), _NONE))
    tid, time, out, cpu, state = (np.concatenate([part[place] for part in parts]) for place in range(5))
    rank = np.concatenate([np.full(len(part[0]), part[5]) for part in parts])
    next_tid = np.concatenate(nexts)
    thread, span = people.number(tid), spans.of(time)
    kept = np.flatnonzero((thread >= 0) & (span >= 0))
    group = thread[kept] * stretch + span[kept]
    order = np.lexsort((rank[kept], time[kept], group))
    kept, group = kept[order], group[order]
    out, rank = out[kept], rank[kept]
    twice = np.zeros(len(kept), bool)  # perf's own record of a switch that the scheduler's event has shown already
    twice[1:] = (group[1:] == group[:-1]) & out[1:] & out[:-1] & (rank[1:] == _SAME) & (rank[:-1] != _SAME)
    kept, group, out = kept[~twice], group[~twice], out[~twice]
    return _Edges(group, time[kept].astype(np.int64), out, cpu[kept], state[kept], next_tid[kept])


def ends_of(recording: Recording, people: People, spans: Spans) -> Array:
    """When each group ends: with its stretch, or with its thread."""
    ends = np.tile(spans.ends, len(people))
    for number, tid in enumerate(people.tids.tolist()):
        if (end := recording.tasks.end(tid)) is not None:
            mine = slice(number * len(spans.ends), (number + 1) * len(spans.ends))
            ends[mine] = np.minimum(ends[mine], end)
    return ends


def _between(edges: _Edges, wakes: Wakes, keys: Keys) -> list[dict[str, Array]]:
    """From each switch to the next one of the same thread; two of a kind in a row show nothing of what was between."""
    pairs = np.flatnonzero((edges.group[1:] == edges.group[:-1]) & (edges.out[1:] != edges.out[:-1]))
    off, waits = _parts(edges, pairs, edges.time[pairs + 1], wakes, keys)
    off["state"][(off["state"] == BLOCKED) & (off["wake"] < 0)] = UNWOKEN
    return [off, waits]


def _last(edges: _Edges, wakes: Wakes, keys: Keys, end_of: Array) -> list[dict[str, Array]]:
    """From the last switch of each group to its end."""
    last = np.flatnonzero(np.append(edges.group[1:] != edges.group[:-1], True)[: len(edges.group)])
    last = last[~(edges.out[last] & (edges.state[last] & _DEAD != 0))]
    ends = np.maximum(end_of[edges.group[last]], edges.time[last])
    return _parts(edges, last, ends, wakes, keys)


def _parts(edges: _Edges, places: Array, ends: Array, wakes: Wakes, keys: Keys) -> list[dict[str, Array]]:
    """The intervals that begin with switches: running; or preempted; or blocked, and runnable once woken."""
    group, begins, cpu = edges.group[places], edges.time[places], edges.cpu[places]
    out, state, nexts = edges.out[places], edges.state[places], edges.next_tid[places]
    is_blocked = out & (state != 0)
    wake = keys.first_after(wakes.keys, group, begins)
    wake = np.where(is_blocked & (wake >= 0) & (wakes.time[wake] <= ends) if len(wakes.time) else False, wake, -1)
    woken = wake >= 0
    until = ends.copy()
    if len(wakes.time):
        until[woken] = wakes.time[wake[woken]]
    kind = np.where(out, np.where(is_blocked, BLOCKED, PREEMPTED), RUNNING)
    off = _columns(begins, until, group, kind, np.where(is_blocked, _NONE, cpu), nexts)
    off["is_deep"], off["wake"] = is_blocked & (state & _UNINTERRUPTIBLE != 0), wake
    return [off, _runnable(group[woken], wake[woken], ends[woken], wakes, keys)]


def _runnable(group: Array, wake: Array, ends: Array, wakes: Wakes, keys: Keys) -> dict[str, Array]:
    """From a wake-up to the end of the wait; the last wake-up before it shows on which CPU it waited."""
    last = keys.last_before(wakes.keys, group, ends)
    cpu = wakes.cpu[np.maximum(last, wake)]
    part = _columns(wakes.time[wake], ends, group, np.full(len(wake), RUNNABLE), cpu, np.full(len(wake), _NONE))
    part["wake"] = wake
    return part


def _first(known: _Known, edges: _Edges, wakes: Wakes, keys: Keys, end_of: Array) -> list[dict[str, Array]]:
    """What lies before the first switch of each group, as far as it shows; and who was never switched at all."""
    groups = np.arange(len(end_of))
    at = np.searchsorted(edges.group, groups)
    has = at < len(edges.group)
    has[has] = edges.group[at[has]] == groups[has]
    comes = has.copy()
    comes[has] = ~edges.out[at[has]]
    cpu, ends = wakes.seen_cpu.copy(), end_of.copy()
    cpu[has], ends[has] = edges.cpu[at[has]], edges.time[at[has]]
    ran = ~comes & (has | (wakes.seen < ends))
    since = np.where(known.opened, known.begins, np.minimum(wakes.seen, ends))
    running = _columns(since[ran], ends[ran], groups[ran], _all(ran, RUNNING), cpu[ran], _all(ran, _NONE))
    if not len(wakes.time):
        return [running]
    wake = keys.first_after(wakes.keys, groups, known.begins - 1)
    woken = comes & (wake >= 0)
    woken &= wakes.time[wake] <= ends
    waits = _runnable(groups[woken], wake[woken], ends[woken], wakes, keys)
    slept = woken & known.opened
    none, until = _all(slept, _NONE), wakes.time[wake[slept]]
    blocked = _columns(known.begins[slept], until, groups[slept], _all(slept, BLOCKED), none, none)
    blocked["wake"] = wake[slept]
    return [running, waits, blocked]


def _known(recording: Recording, people: People, spans: Spans) -> _Known:
    stretch, tids = len(spans.begins), people.tids.tolist()
    born = np.array([recording.tasks.births.get(tid, 0) for tid in tids], np.int64).repeat(stretch)
    begins = np.tile(spans.begins, len(people))
    return _Known(begins, np.maximum(begins, born), np.tile(spans.whole, len(people)) & (born < begins))


def _all(chosen: Array, value: int) -> Array:
    return np.full(int(chosen.sum()), value)


def _columns(begins: Array, ends: Array, group: Array, state: Array, cpu: Array, next_tid: Array) -> dict[str, Array]:
    return {
        "begins": begins,
        "ends": ends,
        "group": group,
        "state": state,
        "cpu": cpu,
        "next_tid": next_tid,
        "is_deep": np.zeros(len(begins), bool),
        "wake": np.full(len(begins), -1),
    }


def _counts(edges: _Edges) -> dict[str, int]:
    """How often threads were switched out, and of what kind: what /proc counts as voluntary and involuntary."""
    out = edges.out
    twice = (edges.group[1:] == edges.group[:-1]) & out[1:] & out[:-1]
    return {
        "switches out": int(out.sum()),
        "voluntary": int((out & (edges.state != 0)).sum()),
        "involuntary": int((out & (edges.state == 0)).sum()),
        "unclear": int(twice.sum()),  # a switch in between is missing
    }
