"""The critical path of a program without a graph: from states of threads, and from who woke whom; pure.

It is what Trace Compass calls the bounded one (F. Giraldeau and M. Dagenais, Wait analysis of distributed systems using
kernel tracing, 2016). A step is walked back on the thread that ended it. Where that was blocked, the time until it was
woken is the waker's, as far back as the wait began, and so on in turn. A wait that an interrupt ended, or a program
that was not recorded, stays a wait: for time, a device, a file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from castmates.analysis.dataflow.path_states import NOTHING_KNOWN, UNKNOWN, ThreadStates

OWN, OTHERS = "own thread", "other threads"  # parts of the path
RUNNING, BLOCKED = "running", "blocked"


Wakers = Mapping[tuple[int, int], int]  # who woke a thread, by its track and the moment


@dataclass(frozen=True)
class Carried:
    """A stretch of a path: a thread in one state."""

    track: int
    state: str
    reason: str
    begin: int
    end: int


def wake_path(states: Mapping[int, ThreadStates], wakers: Wakers, track: int, begin: int, end: int) -> list[Carried]:
    """The path of a step that ended on a thread, in the order of time and without gaps."""
    return list(_walked_back(states, wakers, track, begin, end))[::-1]


def _walked_back(
    states: Mapping[int, ThreadStates], wakers: Wakers, now: int, begin: int, at: int
) -> Iterator[Carried]:
    waits = [(now, begin)]  # threads that wait for the one that is followed, and since when: there the path is theirs
    while True:
        while at <= waits[-1][1]:
            now, _ = waits.pop()
            if not waits:
                return
        state, reason, since, until = _before(states.get(now, NOTHING_KNOWN), at)
        since = max(since, waits[-1][1])
        waker = wakers.get((now, at)) if state == BLOCKED and until == at else None
        if waker is not None and waker != now and runs_until(states.get(waker), at):
            waits.append((now, since))
            now = waker
            continue
        yield Carried(now, state, reason, since, at)
        at = since


def _before(states: ThreadStates, at: int) -> tuple[str, str, int, int]:
    """What a thread did until a moment, since when and until when; a gap between states is not known."""
    place = int(np.searchsorted(states.begin, at, "left")) - 1
    if place < 0:
        return UNKNOWN, "", 0, at
    begin, end = int(states.begin[place]), int(states.end[place])
    return (UNKNOWN, "", end, at) if end < at else (states.state[place], states.reason[place], begin, end)


def runs_until(states: ThreadStates | None, at: int) -> bool:
    """Whether a thread runs until a moment, at least."""
    return states is not None and _before(states, at)[0] == RUNNING
