"""The path of a step's schedule: back from its last operation, always to what ended last before it could begin; pure.

An operation begins once two things are over: what it needs, and what its thread ran before. So the walk leads through
edges of the graph and through the order of calls on threads, and whatever lies on it has bounded this step. What lies
between the end of one call and the begin of the next is nobody's: the thread worked on no operation. A node that the
trace has no call of passes on when it was ready, in no time. With what comes before the first call and after the last,
a step adds up exactly, whatever the clocks do: where a call begins before the end of what it needs, the moments that
both have are counted once, as the later one's.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from castmates.analysis.dataflow.graph import Graph
from castmates.analysis.dataflow.join import ABSENT, Steps

Ints = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Path:
    """One step's path, from its first call to its last; times in whole nanoseconds."""

    nodes: Ints  # -1: no node of the graph
    thread: Ints
    begin: Ints  # of the call's part of the path
    end: Ints
    ready: Ints  # when nothing but the executor was in its way: the end of the call before it on the path
    before: int  # the first call
    after: int  # the last one has ended

    @property
    def time(self) -> Ints:
        """By call."""
        return self.end - self.begin

    @property
    def waiting(self) -> Ints:
        """By call, before it begins."""
        return self.begin - self.ready


def paths(graph: Graph, found: Steps) -> list[Path | None]:
    """A path of each step; None where a step has no call of any node."""
    last = _last_needed(graph, found.begin, found.end)
    return [_walked(found, step, last[step]) for step in range(len(found.step_begin))]


def _last_needed(graph: Graph, begin: Ints, end: Ints) -> Ints:
    """By step and node: of the nodes with a call that it needs, through others without one, that which ended last."""
    steps = len(begin)
    rows = np.arange(steps)
    ended = np.full((steps, graph.count), NEVER)  # of the node, or of what it passes on
    carrier = np.full((steps, graph.count), ABSENT)  # the node with a call whose end that is
    found = np.full((steps, graph.count), ABSENT)
    there = begin >= 0
    for node, needs in enumerate(graph.needs):
        if len(needs):
            latest = ended[:, needs].argmax(axis=1)
            found[:, node] = carrier[:, needs][rows, latest]
            ended[:, node] = ended[:, needs][rows, latest]
            carrier[:, node] = found[:, node]
        ended[:, node] = np.where(there[:, node], end[:, node], ended[:, node])
        carrier[:, node] = np.where(there[:, node], node, carrier[:, node])
    return found


def _walked(found: Steps, step: int, last: Ints) -> Path | None:
    """Walk back from the node that ended last; `until` is the moment to which everything is accounted for."""
    there, calls = found.begin[step] >= 0, found.calls
    if not there.any():
        return None
    step_begin, step_end = int(found.step_begin[step]), int(found.step_end[step])
    ended = calls.of[step, int(np.where(there, found.end[step], NEVER).argmax())]
    call: int | None = max(ended, key=calls.end.__getitem__)
    until = step_end
    places: list[int] = []
    begins: list[int] = []
    ends: list[int] = []
    while call is not None:
        ends.append(max(min(int(calls.end[call]), until), step_begin))
        until = max(min(int(calls.begin[call]), ends[-1]), step_begin)
        places.append(call)
        begins.append(until)
        call = _before(found, step, call, last)
    first = min(max(int(found.begin[step][there].min()), step_begin), until)  # from its first node on, the graph runs
    at, begin, end = (np.array(each[::-1], np.int64) for each in (places, begins, ends))
    ready = np.append(first, end[:-1])
    return Path(calls.node[at], calls.thread[at], begin, end, ready, first - step_begin, step_end - int(end[-1]))


def _before(found: Steps, step: int, call: int, last: Ints) -> int | None:
    """What ended last: the call of what this one needs, or the call before it on its thread, in this step."""
    calls, candidates = found.calls, []
    if call > calls.first[calls.thread[call]] and calls.end[call - 1] > found.step_begin[step]:
        candidates.append(call - 1)
    node = int(calls.node[call])
    if node != ABSENT and last[node] != ABSENT:
        candidates += [place for place in calls.of[step, int(last[node])] if calls.begin[place] < calls.begin[call]]
    return max(candidates, key=calls.end.__getitem__, default=None)
