"""Who was on each CPU, and what happened there: page faults, interrupts and migrations of members' threads."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from castmates.timeline.model import categories
from castmates.timeline.perf.groups import People, Scope
from castmates.timeline.perf.reading import KERNEL, Recording
from castmates.timeline.perf.states import States
from castmates.timeline.states import NONE, PREEMPTED, RUNNABLE, RUNNING, Array, is_first, is_last, joined, rows_of
from castmates.timeline.syscalls import FAULT, SOFT, UNKNOWN, number_of, syscall_name, wait_of

FAULTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")
COMING = np.dtype([("cpu", "i4"), ("t", "i8"), ("tid", "i4")], align=True)
TURN = np.dtype([
    ("cpu", "i4"), ("t0", "i8"), ("t1", "i8"),
    ("thread", "i8"),  # number of a member's thread; NONE for others, or nobody
    ("other_tid", "i4"),  # of such a row, who was seen to come; NONE where nobody was
], align=True)  # fmt: skip


def instead_of(scope: Scope, states: States) -> Array:
    """Of each interval in which a thread waited to run, which one ran instead; NONE where that does not show."""
    rows, keys, people = states.rows, scope.keys, scope.people
    comings, found = _comings(scope, states), np.full(len(states.rows), NONE)
    is_preempted = (rows["state"] == PREEMPTED) & (rows["cpu"] >= 0)
    is_runnable = (rows["state"] == RUNNABLE) & (rows["cpu"] >= 0)
    if len(comings):
        coming = keys.of(comings["cpu"], comings["t"])
        for waits, look in ((is_preempted, keys.first_after), (is_runnable, keys.last_before)):
            at = look(coming, rows["cpu"][waits], rows["t0"][waits])
            found[waits] = np.where(at >= 0, comings["tid"][at], NONE)
    shown = is_preempted & (rows["next_tid"] >= 0)
    found[shown] = rows["next_tid"][shown]
    found[found == people.tids[states.thread]] = NONE
    return found


def turns_of(people: People, states: States) -> Array:
    """Who ran on each CPU that members ran on; between them, others or nobody. Rows of a CPU do not overlap."""
    rows = states.rows
    ran = np.flatnonzero((rows["state"] == RUNNING) & (rows["cpu"] >= 0))
    ran = ran[np.lexsort((rows["t0"][ran], rows["cpu"][ran]))]
    own = rows.take(ran)
    turns = rows_of(TURN, cpu=own["cpu"], t0=own["t0"], t1=own["t1"], thread=states.thread[ran], other_tid=NONE)
    same = ~is_first(turns["cpu"])
    turns["t0"] = np.where(same, np.maximum(turns["t0"], np.roll(turns["t1"], 1)), turns["t0"])
    stretch = own["group"] % states.stretches
    gaps = np.flatnonzero((same & (stretch == np.roll(stretch, 1)))[1:] & (turns["t0"][1:] > turns["t1"][:-1]))
    other = _next_of(rows)[ran[gaps]]
    is_other = people.number(other) < 0  # between two members' threads there is the switch, and nobody else
    gaps, other = gaps[is_other], other[is_other]
    between = rows_of(TURN, cpu=turns["cpu"][gaps], t0=turns["t1"][gaps], t1=turns["t0"][gaps + 1], thread=NONE,
                      other_tid=other)  # fmt: skip
    turns = joined([turns, between])
    return turns.compress(turns["t1"] > turns["t0"])


def _next_of(rows: Array) -> Array:
    """Of each interval, who came to its CPU after it: what the following interval of its thread begins with."""
    return np.where(is_first(rows["group"][::-1])[::-1], NONE, np.roll(rows["next_tid"], -1))


def _comings(scope: Scope, states: States) -> Array:
    """Every moment at which somebody is known to have come to a CPU, in the order of both."""
    switches, people = scope.recording.switches, scope.people
    came = switches.compress(~switches["out"] & (people.number(switches["tid"]) < 0))
    runs = states.rows["state"] == RUNNING
    ran = states.rows.compress(runs)
    parts = [
        rows_of(COMING, cpu=ran["cpu"], t=ran["t0"], tid=people.tids[states.thread[runs]]),
        rows_of(COMING, cpu=came["cpu"], t=came["time"], tid=came["tid"]),
    ]
    if (leaves := scope.recording.samples.get("sched:sched_switch")) is not None:
        parts.append(rows_of(COMING, cpu=leaves["cpu"], t=leaves["time"], tid=people.here(leaves["next_pid"])))
    found = joined(parts)
    found = found.compress(found["cpu"] >= 0)
    return found.take(np.lexsort((found["t"], found["cpu"])))


class Interrupts(NamedTuple):
    """Interrupts of one kind, in the order of CPUs and times; those of a CPU do not overlap."""

    kind: str  # irq, softirq
    thread: Array  # that was interrupted
    cpu: Array
    begins: Array
    ends: Array
    names: list[str]  # by code
    code: Array


class Faults(NamedTuple):
    """Page faults of members' threads."""

    thread: Array
    time: Array
    cpu: Array
    in_kernel: Array


class Migrations(NamedTuple):
    """Threads that came back on another CPU."""

    thread: Array
    time: Array
    origin: Array
    to: Array


def faults_of(scope: Scope) -> Iterator[Faults]:
    """Page faults; the software event knows all that the others do."""
    samples = scope.recording.samples
    for name in ("page-faults",) if "page-faults" in samples else FAULTS:
        if name in samples:
            own, group = scope.rows(samples[name])
            in_kernel = own["mode"] == KERNEL if name == "page-faults" else np.full(len(own), name.endswith("kernel"))
            yield Faults(group // scope.stretches, own["time"], own["cpu"], in_kernel)


def interrupts_of(scope: Scope) -> Iterator[Interrupts]:
    """Interrupts that members' threads had to bear: on a CPU each ends before the next of its kind begins."""
    for kind, begin, end, number in (
        ("irq", "irq:irq_handler_entry", "irq:irq_handler_exit", "irq"),
        ("softirq", "irq:softirq_entry", "irq:softirq_exit", "vec"),
    ):
        begins, ends = scope.recording.samples.get(begin), scope.recording.samples.get(end)
        if begins is None or ends is None:
            continue
        table, is_end = joined([begins, ends]), np.arange(len(begins) + len(ends)) >= len(begins)
        order = np.lexsort((is_end, table["time"], table["cpu"]))
        table, is_end = table.take(order), is_end[order]
        then = np.roll(table, -1)
        same = (then["cpu"] == table["cpu"]) & (then[number] == table[number])
        pairs = np.flatnonzero((same & ~is_end)[:-1] & is_end[1:])
        thread = scope.people.number(table["tid"][pairs])
        kept = (thread >= 0) & (scope.spans.of(table["time"][pairs]) >= 0)
        own = table.take(pairs[kept])
        unique, code = np.unique(own[number], return_inverse=True)
        names = [_name(scope.recording, kind, one) for one in unique.tolist()]
        yield Interrupts(kind, thread[kept], own["cpu"], own["time"], then["time"][pairs[kept]], names, code)


def migrations_of(states: States) -> Migrations:
    """Threads that came back on another CPU."""
    ran = np.flatnonzero((states.rows["state"] == RUNNING) & (states.rows["cpu"] >= 0))
    own, before = states.rows.take(ran), np.roll(states.rows["cpu"][ran], 1)
    moved = ~is_first(own["group"]) & (own["cpu"] != before)
    return Migrations(states.thread[ran[moved]], own["t0"][moved], before[moved], own["cpu"][moved])


def _name(recording: Recording, kind: str, number: int) -> str:
    if kind == "softirq":
        return SOFT[number] if 0 <= number < len(SOFT) else f"softirq {number}"
    return recording.tasks.irqs.get(number) or f"irq {number}"


# System calls of members' threads: each enter with its exit, and in what a blocked thread waits.
#
# What was going on at an edge of a stretch is open there.

ENTER, EXIT = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"
ENDED, BEFORE, STILL, UNSEEN = range(4)
RESTARTS, TIMED_OUT = -516, -110  # ERESTART_RESTARTBLOCK, which programs never see, and ETIMEDOUT
HOW = ("", "began before", "not over", "end not seen")  # the detail of an interval
SIDE = np.dtype(
    [("group", "i8"), ("t", "i8"), ("number", "i4"), ("result", "f8"), ("cpu", "i4"), ("exits", "?")], align=True
)
CALL = np.dtype([
    ("group", "i8"), ("t0", "i8"), ("t1", "i8"), ("number", "i4"),
    ("result", "f8"),  # NaN where the end was not seen
    ("how", "i1"), ("cpu", "i4"),
], align=True)  # fmt: skip
"""A system call; those of a group do not overlap."""


def calls_of(scope: Scope) -> tuple[Array, int]:
    """Pair enters and exits: the calls in the order of groups and times, and how many ends have no begin."""
    sides = joined([_side(scope, name) for name in (ENTER, EXIT)])
    sides = sides.take(scope.order(sides["group"], sides["t"]))
    group, t, exits = sides["group"], sides["t"], sides["exits"]
    has_next = ~is_last(group)
    closed = ~exits & has_next & np.roll(exits, -1)
    early = exits & is_first(group) & scope.opened[group]  # of a call that was going on as its stretch began
    calls = rows_of(
        CALL,
        group=group,
        t0=np.where(exits, scope.begins[group], t),
        t1=np.where(exits, t, np.where(has_next, np.roll(t, -1), np.maximum(scope.ends[group], t))),
        number=sides["number"],
        result=np.where(exits, sides["result"], np.where(closed, np.roll(sides["result"], -1), np.nan)),
        how=np.select([exits, closed, has_next], [BEFORE, ENDED, UNSEEN], STILL),
        cpu=sides["cpu"],
    )
    calls = calls.compress(~exits | early)
    calls["number"] = _restarted(calls, scope.recording.header.about.get("arch", ""))
    return calls, int(exits.sum()) - int(closed.sum()) - int(early.sum())


def _restarted(calls: Array, machine: str) -> Array:
    """The numbers of calls, where one that the kernel restarts keeps its own, as its thread waits for the same.

    A freeze or a signal ends a wait with a time limit, and the kernel goes on with it by `restart_syscall`. Where the
    call before it was not seen, a time limit that is over shows a futex: no other restarted call returns that.
    """
    group, number, result = calls["group"], calls["number"], calls["result"]
    again = number == number_of("restart_syscall", machine)
    follows = again.copy()
    follows[:1] = False
    follows[1:] &= (group[1:] == group[:-1]) & (result[:-1] == RESTARTS)
    first = np.maximum.accumulate(np.where(follows, 0, np.arange(len(number))))
    found = number[first]
    still = found == number_of("restart_syscall", machine)
    return np.where(still & again & (result == TIMED_OUT), number_of("futex", machine), found)


def _side(scope: Scope, event: str) -> Array:
    """The enters or the exits of members' threads."""
    if (table := scope.recording.samples.get(event)) is None:
        return np.empty(0, SIDE)
    own, group = scope.rows(table)
    result = own["ret"] if event == EXIT else np.nan
    return rows_of(SIDE, group=group, t=own["time"], number=own["id"], result=result, cpu=own["cpu"],
                   exits=event == EXIT)  # fmt: skip


def waits(scope: Scope, blocked: Array, calls: Array) -> pd.Categorical:
    """In what blocked threads waited: the call that each is in, by kind; or a page fault, or something unknown.

    A thread that is blocked outside of any call, so that no signal ends it, waits within a page fault; this shows
    only where calls were recorded.
    """
    if not len(calls):
        return pd.Categorical([UNKNOWN] * len(blocked), categories=pd.Index([UNKNOWN], dtype="str"))
    machine = scope.recording.header.about.get("arch", "")
    at = scope.keys.last_before(scope.keys.of(calls["group"], calls["t0"]), blocked["group"], blocked["t0"])
    within = (at >= 0) & (calls["t1"][at] >= blocked["t0"])
    numbers = np.where(within, calls["number"][at], np.where(blocked["is_deep"] & (at >= 0), -2, -1))
    codes, unique = pd.factorize(numbers)
    words = {-1: UNKNOWN, -2: FAULT}
    return categories(codes, [words.get(int(one)) or wait_of(syscall_name(int(one), machine)) for one in unique])
