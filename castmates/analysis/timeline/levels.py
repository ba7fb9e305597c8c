"""How many of several kinds of things go on at once, over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Spans = tuple[Ints, Ints]  # where each begins, and where it ends


def levels(within: Spans, *groups: Spans) -> tuple[Ints, Ints]:
    """Stretches of time in which the number of each group that goes on does not change, inside of `within`.

    Returns how long each stretch is, and of each group (a row) how many of its spans go on in each stretch.
    """
    every = (within, *groups)
    at = np.concatenate([edge for begin, end in every for edge in (begin, end)])
    change = np.zeros((len(every), len(at)), np.int64)
    place = 0
    for number, (begin, end) in enumerate(every):
        change[number, place : place + len(begin)] = 1
        change[number, place + len(begin) : place + len(begin) + len(end)] = -1
        place += len(begin) + len(end)
    order = np.argsort(at, kind="stable")
    going_on = np.cumsum(change[:, order], axis=1)[:, :-1]
    lasts = np.diff(at[order])
    kept = (lasts > 0) & (going_on[0] > 0)
    return lasts[kept], going_on[1:, kept]


def quantile_of_time(lasts: Ints, level: Ints, share: float) -> float:
    """The level that is not exceeded for this share of the time; NaN without any."""
    if not len(lasts):
        return float("nan")
    order = np.argsort(level, kind="stable")
    reached = np.cumsum(lasts[order]) / lasts.sum()
    return float(level[order][np.searchsorted(reached, share * (1 - 1e-12))])


def merged(begins: Sequence[int], ends: Sequence[int]) -> Spans:
    """The spans in order, those that overlap as one."""
    together: list[list[int]] = []
    for begin, end in sorted(zip(begins, ends, strict=True)):
        if together and begin <= together[-1][1]:
            together[-1][1] = max(end, together[-1][1])
        else:
            together.append([begin, end])
    both = np.array(together, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
