"""System calls of members' threads: each enter with its exit, and in what a blocked thread waits.

What was going on at an edge of a stretch is open there.
"""

import numpy as np
import pandas as pd

from castmates.timeline.model import categories
from castmates.timeline.perf.groups import Scope
from castmates.timeline.states import Array, is_first, is_last, joined, rows_of
from castmates.timeline.syscalls import FAULT, UNKNOWN, number_of, syscall_name, wait_of

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
