"""What threads did at each moment, from their switches and wake-ups: one machine for perf, ftrace and LTTng.

An edge is a moment from which on a thread does something else, and its state lasts until the thread's next edge:

    edges       in        out: can run   in       out: sleeps    woken        in
    a thread    |-------------|----------|-------------|-----------|-----------|------ ...
    state          running      preempted   running       blocked     runnable    running

- A wake-up is an edge only of a thread that is blocked, has ended, or was not seen before, and only the first one: the
  kernel reports it twice.
- in after in, or out after anything but running: a switch between the two is missing, and what was there is not known.
- in after blocked: the thread was woken and waited for a CPU, and nobody saw since when (`UNWOKEN`).
- The last edge of a thread holds until the end that is given with it.

The readers say what their tracers know besides: what was before a first edge, where events were lost, and on which CPU
and instead of whom a thread waits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RUNNING, RUNNABLE, PREEMPTED, BLOCKED, UNKNOWN, UNWOKEN, GONE = range(7)
NAMES = ("running", "runnable", "preempted", "blocked", "unknown")  # UNWOKEN is shown as unknown, GONE never
NONE = -1
LEAVES = (PREEMPTED, BLOCKED, GONE)  # the states that begin as a thread leaves its CPU

EDGE = np.dtype([("group", "i8"), ("t", "i8"), ("state", "i1"), ("cpu", "i4")], align=True)
"""An edge: of which thread (or thread and stretch), when, what it does from then on, and where."""
LINK = np.dtype([
    ("edge", "i8"),  # the place of the edge that begins it
    ("group", "i8"), ("t0", "i8"), ("t1", "i8"), ("state", "i1"), ("cpu", "i4"),
    ("next_state", "i1"), ("next_cpu", "i4"),  # of the thread's next edge; NONE behind the last one
    ("missing", "?"),  # a switch is missing, so that this was not its state for all of that time
], align=True)  # fmt: skip
"""From an edge to the next one of the same thread."""


def rows_of(kind: np.dtype[Any], /, **columns: Any) -> Array:  # noqa: ANN401 (arrays, and values that all rows have)
    """A table of named columns; those that are left out are 0."""
    table = np.zeros(max((len(each) for each in columns.values() if np.ndim(each)), default=0), kind)
    for name, values in columns.items():
        table[name] = values
    return table


def joined(parts: Sequence[Array]) -> Array:
    """Tables of one kind as one, byte by byte: numpy itself would copy each field of each row, 20 times slower.

    Likewise `take` and `compress` choose rows that much faster than brackets do.
    """
    kind = parts[0].dtype
    plain = np.dtype((np.void, kind.itemsize))
    whole: Array = np.concatenate([part.view(plain) for part in parts]).view(kind)
    return whole


def chains(edges: Array, ends: Array | int) -> Array:
    """The states between edges, which must be in the order of threads and times; `ends` of each, or of all."""
    places = np.flatnonzero(_counts(edges["group"], edges["state"]))
    ends = np.broadcast_to(ends, len(edges))[places]
    edges = edges.take(places)
    follows = ~is_last(edges["group"])
    links = rows_of(LINK, edge=places, group=edges["group"], t0=edges["t"], state=edges["state"], cpu=edges["cpu"])
    links["t1"] = np.where(follows, np.roll(edges["t"], -1), np.maximum(ends, edges["t"]))
    links["next_state"] = np.where(follows, np.roll(edges["state"], -1), NONE)
    links["next_cpu"] = np.where(follows, np.roll(edges["cpu"], -1), NONE)
    state, then = edges["state"], links["next_state"]
    links["missing"] = np.where(state == RUNNING, then == RUNNING, np.isin(then, LEAVES))
    links["state"][(state == BLOCKED) & (then == RUNNING)] = UNWOKEN
    return links


def is_first(group: Array) -> Array:
    """Which rows are the first of their group; those of a group must stand together."""
    return np.append(True, group[1:] != group[:-1])[: len(group)]


def is_last(group: Array) -> Array:
    """Which rows are the last of their group."""
    return np.append(group[1:] != group[:-1], True)[: len(group)]


def _counts(group: Array, state: Array) -> Array:
    """Which edges change a state: all but the wake-ups of who was not blocked, or is woken already."""
    wakes, first, place = state == RUNNABLE, is_first(group), np.arange(len(group))
    start = np.maximum.accumulate(np.where(first, place, 0))
    switch = np.maximum.accumulate(np.where(wakes, NONE, place))  # the last edge so far that is no wake-up
    before = np.where(switch >= start, state[np.maximum(switch, 0)], BLOCKED)
    again = np.append(False, wakes[:-1])[: len(group)] & ~first
    changes: Array = ~wakes | (np.isin(before, (BLOCKED, GONE)) & ~again)
    return changes
