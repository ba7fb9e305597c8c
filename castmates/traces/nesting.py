"""Which interval of a thread lies in which, what is its own, and how all threads share each moment; pure.

Times are whole numbers. An event that ends after the one that it began in is cut there: clocks can do that, threads
cannot.

What runs at the same moment shares that moment equally. Events have a level: those of level 1 count only where none of
level 0 runs, and so on; an event without a level never counts itself. So the parts of a step, and what is left where
nothing counts, add up to the step.
"""

from dataclasses import dataclass
from itertools import pairwise

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


Flags = npt.NDArray[np.bool_]


def depths(begin: Ints, end: Ints) -> tuple[Ints, Flags]:
    """By interval, in the order of begins with longer ones first: in how many it lies, and whether it crosses one.

    What crosses lies in nothing, and nothing is taken to lie in it.
    """
    found, crosses = np.zeros(len(begin), np.int64), np.zeros(len(begin), bool)
    open_ends: list[int] = []
    for place, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        while open_ends and open_ends[-1] <= first:
            open_ends.pop()
        if open_ends and last > open_ends[-1]:
            crosses[place] = True
            continue
        found[place] = len(open_ends)
        open_ends.append(last)
    return found, crosses


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


Floats = npt.NDArray[np.float64]
NEVER = -1  # the level of what only calls others


@dataclass(frozen=True)
class Threads:
    """The events of all threads, with their places in one row."""

    begin: Ints
    end: Ints
    parent: Ints  # the place of the event that calls it, on the same thread; -1 for none
    level: Ints


def shared(threads: Threads, step_begin: Ints, step_end: Ints) -> Floats:
    """What each event has of the steps, without those that it calls; steps follow each other and do not overlap."""
    edges, places = np.unique(np.concatenate([threads.begin, threads.end, step_begin, step_end]), return_inverse=True)
    count, steps = len(threads.begin), len(step_begin)
    begins, ends = places[:count], places[count : 2 * count]
    free = _running(places[2 * count : 2 * count + steps], places[2 * count + steps :], len(edges)) > 0
    length, inner = np.diff(edges), threads.parent != NOBODY
    found = np.zeros(count)
    for level in range(int(threads.level.max(initial=NEVER)) + 1):
        own = threads.level == level
        weight = own.astype(np.int64)  # when it begins it runs, and who called it does not
        weight[inner] -= own[threads.parent[inner]]
        running = _running(begins, ends, len(edges), weight)
        part = np.divide(length, running, out=np.zeros(len(length)), where=free & (running > 0))
        clock = np.concatenate([[0.0], np.cumsum(part)])
        whole = clock[ends] - clock[begins]
        called = np.zeros(count)
        np.add.at(called, threads.parent[inner], whole[inner])
        found += np.where(own, whole - called, 0.0)
        free &= running == 0
    return found


def shared_by_parts(threads: Threads, step_begin: Ints, step_end: Ints, at_once: int = 500_000) -> Floats:
    """The same, some steps at a time, so that no more than about so many events are in memory several times."""
    found = np.zeros(len(threads.begin))
    steps = len(step_begin)
    parts = max(1, min(steps, -(-len(threads.begin) // at_once)))
    for first, last in pairwise(np.linspace(0, steps, parts + 1).astype(np.int64).tolist()):
        own_begin, own_end = step_begin[first:last], step_end[first:last]
        if not len(own_begin):
            continue
        there = np.flatnonzero((threads.end > own_begin[0]) & (threads.begin < own_end[-1]))
        place = np.full(len(threads.begin) + 1, NOBODY, np.int64)  # one more, for the parent of those who have none
        place[there] = np.arange(len(there))
        part = Threads(threads.begin[there], threads.end[there], place[threads.parent[there]], threads.level[there])
        found[there] += shared(part, own_begin, own_end)
    return found


def _running(begins: Ints, ends: Ints, edges: int, weight: Ints | int = 1) -> Ints:
    """How many run between each edge and the next."""
    change = np.zeros(edges, np.int64)
    np.add.at(change, begins, weight)
    np.subtract.at(change, ends, weight)
    return np.cumsum(change)[:-1]
