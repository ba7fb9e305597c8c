"""Which event of a thread calls which, and what each takes itself; pure.

Times are whole numbers. An event that ends after the one that it began in is cut there: clocks can do that, threads
cannot.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NOBODY = -1
AT_ONCE = 1_000_000  # events that are in memory as plain numbers


def nested(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """By event of one thread: its parent's place or -1, and its end, cut to the parent's. Begins must be sorted.

    Of events that begin together the longer one must come first.
    """
    parents, ends = np.full(len(begin), NOBODY, np.int64), end.copy()
    open_: list[int] = []  # the events that are open, and …
    until: list[int] = []  # … when each of them ends
    for first in range(0, len(begin), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        begins, cut, callers = begin[part].tolist(), end[part].tolist(), parents[part].tolist()  # faster than arrays
        for place, moment in enumerate(begins):
            while until and until[-1] <= moment:
                until.pop()
                open_.pop()
            if open_:
                callers[place] = open_[-1]
                cut[place] = min(cut[place], until[-1])
            open_.append(first + place)
            until.append(cut[place])
        parents[part], ends[part] = callers, cut
    return parents, ends


def in_order(begin: Ints, end: Ints) -> Ints:
    """The order that `nested` needs."""
    return np.lexsort((-end, begin))


def own(begin: Ints, end: Ints, parents: Ints) -> Ints:
    """What each event takes without those that it calls."""
    length = end - begin
    called = np.zeros(len(begin), np.int64)
    inner = parents != NOBODY
    np.add.at(called, parents[inner], length[inner])
    return np.asarray(length - called)
