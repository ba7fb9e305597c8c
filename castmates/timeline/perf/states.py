"""The states of members' threads in a recording of perf: chains without gaps and overlaps.

A chain lasts from the begin of a stretch in which nothing was lost, or a thread's birth, until the end of either. Where
the recorder knows that all events were on from the begin of a stretch, the first event shows what was before it: who is
switched out has run, who is woken was blocked. What no event shows is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castmates.timeline.perf.groups import Scope
from castmates.timeline.states import (
    BLOCKED,
    EDGE,
    GONE,
    NONE,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    UNKNOWN,
    UNWOKEN,
    Array,
    chains,
    is_first,
    is_last,
    joined,
    rows_of,
)

WAKE_UPS = ("sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new")
_ALL, _UNINTERRUPTIBLE, _DEAD = 0xFF, 0x02, 0x30  # bits of a thread's state as it is switched out; none: it can run
_INTERRUPTED = 0x08 | 0x10  # the waker's flags: it was within an interrupt, which has nothing to do with who ran there
_NEVER = np.iinfo(np.int64).max
WAKE = np.dtype([("group", "i8"), ("t", "i8"), ("cpu", "i4"), ("waker", "i4")], align=True)
"""A wake-up: on whose queue the thread was put, and who did it, NONE for an interrupt."""
SWITCH = np.dtype([
    ("group", "i8"), ("t", "i8"), ("out", "?"), ("cpu", "i4"),
    ("left", "i4"),  # the bits with which it was switched out
    ("next_tid", "i4"),  # who came instead, as the switch has it; NONE where it does not show
    ("repeats", "?"),  # perf's own record of a switch: it stands behind the scheduler's event of the same moment
], align=True)  # fmt: skip
"""A switch of a thread, in or out."""
STATE = np.dtype([
    ("group", "i8"), ("t0", "i8"), ("t1", "i8"), ("state", "i1"), ("cpu", "i4"),
    ("next_tid", "i4"),  # of the switch that it begins with
    ("is_deep", "?"),  # blocked so that no signal ends it
    ("wake", "i8"),  # of a blocked or runnable one, the place of its wake-up; NONE for none
], align=True)  # fmt: skip
"""What a thread did from one moment to another."""


@dataclass(frozen=True)
class States:
    """All intervals, in the order of groups and times."""

    rows: Array  # of STATE
    thread: Array
    wakes: Array  # of WAKE
    counts: dict[str, int]
    stretches: int

    def wake_thread(self) -> Array:
        """Of each wake-up that ended a wait, whom it woke."""
        found = np.full(len(self.wakes), NONE)
        woken = self.rows["wake"] >= 0
        found[self.rows["wake"][woken]] = self.thread[woken]
        return found


def states_of(scope: Scope) -> States:
    """Build the chains."""
    wakes, switches = _wakes(scope), _switches(scope)
    rows = _in_order(scope, [*_chained(scope, switches, wakes), _before(scope, switches)])
    if len(gaps := _gaps(scope, rows)):
        rows = _in_order(scope, [rows, gaps])
    return States(rows, rows["group"] // scope.stretches, wakes, _counts(switches), scope.stretches)


def _in_order(scope: Scope, parts: Sequence[Array]) -> Array:
    """All intervals that take time, in the order of groups and times."""
    rows = joined([part.compress(part["t1"] > part["t0"]) for part in parts])
    return rows.take(scope.order(rows["group"], rows["t0"]))


def _wakes(scope: Scope) -> Array:
    """The wake-ups, in the order of whom they wake and of times."""
    parts = [np.empty(0, WAKE)]
    for name in WAKE_UPS:
        if (table := scope.recording.samples.get(name)) is not None:
            own, group = scope.rows(table, scope.people.here(table["pid"]))
            waker = np.where(own["common_flags"] & _INTERRUPTED != 0, NONE, own["tid"])
            parts.append(rows_of(WAKE, group=group, t=own["time"], cpu=own["target_cpu"], waker=waker))
    wakes = joined(parts)
    return wakes.take(scope.order(wakes["group"], wakes["t"]))


def _switches(scope: Scope) -> Array:
    """Join the scheduler's events, which know why a thread leaves, with perf's own, which show when it comes."""
    switches, parts = scope.recording.switches, list[Array]()
    if (leaves := scope.recording.samples.get("sched:sched_switch")) is not None:
        own, group = scope.rows(leaves)
        common = {"group": group, "t": own["time"], "cpu": own["cpu"], "left": own["prev_state"] & _ALL}
        parts.append(rows_of(SWITCH, **common, out=True, next_tid=scope.people.here(own["next_pid"])))
        if not len(switches):  # a recording of whole CPUs, in which each switch shows both threads
            own, group = scope.rows(leaves, scope.people.here(leaves["next_pid"]))
            parts.append(rows_of(SWITCH, group=group, t=own["time"], cpu=own["cpu"], next_tid=NONE))
    own, group = scope.rows(switches)
    common = {"group": group, "t": own["time"], "cpu": own["cpu"], "out": own["out"], "left": ~own["preempted"]}
    parts.append(rows_of(SWITCH, **common, next_tid=NONE, repeats=True))
    found = joined(parts)
    found = found.take(scope.order(found["group"], found["t"]))
    out, repeats = found["out"], found["repeats"]
    twice = ~is_first(found["group"]) & out & np.roll(out, 1) & repeats & ~np.roll(repeats, 1)
    return found.compress(~twice)


def _chained(scope: Scope, switches: Array, wakes: Array) -> list[Array]:
    """The states from the first switch of each group on, or from the wake-up before it."""
    out, left, group = switches["out"], switches["left"], switches["group"]
    dead = is_last(group) & out & (left & _DEAD != 0)
    state = np.select([~out, dead, left == 0], [RUNNING, GONE, PREEMPTED], BLOCKED)
    # Nothing shows that a thread without switches slept, or that a dead one woke.
    until = np.full(len(scope.ends), NONE)
    last = is_last(group)
    until[group[last]] = np.where(dead, switches["t"], np.maximum(scope.ends[group], switches["t"]))[last]
    counted = np.flatnonzero(wakes["t"] <= until[wakes["group"]])
    edges = joined([
        rows_of(EDGE, group=wakes["group"][counted], t=wakes["t"][counted], state=RUNNABLE, cpu=NONE),
        rows_of(EDGE, group=group, t=switches["t"], state=state, cpu=switches["cpu"]),
    ])  # fmt: skip
    order = scope.order(edges["group"], edges["t"])  # at one moment wake-ups come first, as above
    edges = edges.take(order)
    links = chains(edges, scope.ends[edges["group"]])
    source = order[links["edge"]]
    is_wake, waits = source < len(counted), (links["state"] == BLOCKED) & (links["next_state"] == RUNNABLE)
    links["missing"][:-1] |= waits[:-1] & links["missing"][1:]  # of a wait without an end not even its begin is shown
    by = switches.take(source[~is_wake] - len(counted))
    rows = rows_of(STATE, **{name: links[name] for name in ("group", "t0", "t1", "state", "cpu")})
    rows["next_tid"], rows["wake"] = NONE, NONE
    rows["next_tid"][~is_wake] = by["next_tid"]
    rows["is_deep"][~is_wake] = by["out"] & (by["left"] & _UNINTERRUPTIBLE != 0)
    rows["cpu"][np.isin(rows["state"], (BLOCKED, UNWOKEN))] = NONE
    rows["wake"][is_wake] = counted[source[is_wake]]
    rows["wake"][:-1][waits[:-1]] = rows["wake"][1:][waits[:-1]]
    runnable = rows.compress(is_wake)  # the last wake-up before the end of a wait shows on which CPU it was
    latest = scope.keys.last_before(scope.keys.of(wakes["group"], wakes["t"]), runnable["group"], runnable["t1"])
    rows["cpu"][is_wake] = wakes["cpu"][np.maximum(latest, runnable["wake"])]
    shown = ~links["missing"] & (rows["state"] != GONE)
    slept = is_first(rows["group"]) & is_wake & shown & scope.opened[rows["group"]]
    blocked = rows_of(STATE, group=rows["group"][slept], t0=scope.begins[rows["group"][slept]], t1=rows["t0"][slept],
                      state=BLOCKED, cpu=NONE, next_tid=NONE, wake=rows["wake"][slept])  # fmt: skip
    return [rows.compress(shown), blocked]


def _before(scope: Scope, switches: Array) -> Array:
    """Who ran before the first switch of a group, because that is one out; and who was never switched at all."""
    seen, cpu = _first_seen(scope)
    ends, came = scope.ends.copy(), np.zeros(len(seen), bool)
    first = switches.compress(is_first(switches["group"]))
    group = first["group"]
    ends[group], cpu[group], came[group] = first["t"], first["cpu"], ~first["out"]
    ran = seen < ends
    ran[group] = True
    ran &= ~came
    since = np.where(scope.opened, scope.begins, np.minimum(seen, ends))
    return rows_of(STATE, group=np.flatnonzero(ran), t0=since[ran], t1=ends[ran], state=RUNNING, cpu=cpu[ran],
                   next_tid=NONE, wake=NONE)  # fmt: skip


def _first_seen(scope: Scope) -> tuple[Array, Array]:
    """When and where each thread first did something in each stretch, and so ran; far in the future if it never did."""
    seen, cpus = np.full(len(scope.begins), _NEVER), np.full(len(scope.begins), NONE)
    for table in scope.recording.samples.values():
        own, group = scope.rows(table)
        order = scope.order(group, own["time"])
        first = order[is_first(group[order])]
        first = first[own["time"][first] < seen[group[first]]]
        seen[group[first]], cpus[group[first]] = own["time"][first], own["cpu"][first]
    return seen, cpus


def _gaps(scope: Scope, rows: Array) -> Array:
    """Between the intervals of each group, and before its first one since its stretch or its thread began."""
    since = np.where(is_first(rows["group"]), scope.since[rows["group"]], np.roll(rows["t1"], 1))
    at = rows["t0"] > since
    return rows_of(STATE, group=rows["group"][at], t0=since[at], t1=rows["t0"][at], state=UNKNOWN, cpu=NONE,
                   next_tid=NONE, wake=NONE)  # fmt: skip


def _counts(switches: Array) -> dict[str, int]:
    """How often threads were switched out, and of what kind: what /proc counts as voluntary and involuntary."""
    out, left = switches["out"], switches["left"]
    twice = ~is_first(switches["group"]) & out & np.roll(out, 1)
    counts: dict[str, Any] = {
        "switches out": out.sum(),
        "voluntary": (out & (left != 0)).sum(),
        "involuntary": (out & (left == 0)).sum(),
        "unclear": twice.sum(),  # a switch in between is missing
    }
    return {name: int(count) for name, count in counts.items()}
