"""Pairs begins with ends, and gives intervals their depths: whole columns at once."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from castmates.traces.nesting import NOBODY, nested

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def pairs(thread: Ints, begins: Flags) -> tuple[Ints, Ints]:
    """Places of begins and of their ends, as brackets match on each thread; events must be in the order of time.

    A begin without an end, and an end without a begin, are in no pair.
    """
    if not len(thread):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(thread, kind="stable")
    of, begin = thread[order], begins[order]
    step = np.where(begin, 1, -1)
    level = np.cumsum(step)
    first = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
    before = np.repeat(np.r_[0, level[first[1:] - 1]], np.diff(np.r_[first, len(of)]))  # of the threads before
    level = level - before + ~begin  # an end is on the level of its begin
    by_level = np.lexsort((np.arange(len(of)), level, of))
    of, level, begin, order = of[by_level], level[by_level], begin[by_level], order[by_level]
    match = np.flatnonzero(begin[:-1] & ~begin[1:] & (of[1:] == of[:-1]) & (level[1:] == level[:-1]))
    return order[match], order[match + 1]


def fitted(track: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, int]:
    """Depths and ends of intervals, in the order given; one that outlasts what it began in is cut there.

    The third is how many that holds for.
    """
    ends, depth, cut = end.copy(), np.zeros(len(begin), np.int64), 0
    order = np.lexsort((-end, begin, track))
    edges = np.flatnonzero(np.r_[True, np.diff(track[order]) != 0, True]) if len(order) else [0]
    for first, last in pairwise(edges):
        own = order[first:last]
        if (begin[own][1:] >= np.maximum.accumulate(end[own])[:-1]).all():
            continue  # one after the other
        parents, inner = nested(begin[own], end[own])
        cut += int((inner != end[own]).sum())
        ends[own] = inner
        depth[own] = _depths(parents)
    return depth, ends, cut


def _depths(parents: Ints) -> Ints:
    """By how many others each is enclosed; parents come before what they enclose."""
    depth = np.zeros(len(parents), np.int64)
    rows = np.flatnonzero(parents != NOBODY)
    above = parents[rows]
    while len(rows):  # a turn per level
        depth[rows] += 1
        above = parents[above]
        inner = above != NOBODY
        rows, above = rows[inner], above[inner]
    return depth
