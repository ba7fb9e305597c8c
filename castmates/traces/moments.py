"""Divides each moment of some steps among all that runs then, on all threads; pure.

What runs at the same moment shares that moment equally. Events have a level: those of level 1 count only where none of
level 0 runs, and so on; an event without a level never counts itself. So the parts of a step, and what is left where
nothing counts, add up to the step.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from castmates.traces.nesting import NOBODY

Ints = npt.NDArray[np.int64]
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
