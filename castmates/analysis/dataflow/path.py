"""The critical path of a step as it ran: back from its last node, always to what it needed and that ended last; pure.

A node's time on the path is what lies between its begin and its end. What lies between the end of that dependency and
the node's begin is waiting: the node was ready. The path's first node, which needs none, is ready when any node of the
step begins. A node that the trace has no call of passes on when it was ready, in no time. With what comes before the
first node and after the last, a step adds up exactly, whatever the clocks do: where a call begins before the end of
what it needs, the moments that both have are counted once, as the later one's.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from castmates.analysis.dataflow.graph import Graph

Ints = npt.NDArray[np.int64]
NONE = -1
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Path:
    """One step's path, from its first node to its last; times in whole nanoseconds."""

    nodes: Ints
    begin: Ints  # of the node's part of the path
    end: Ints
    ready: Ints  # when the node was ready: between this and its begin it waits; the first since any node began
    before: int  # the first node of all begins
    after: int  # the last one has ended

    @property
    def time(self) -> Ints:
        """By node."""
        return self.end - self.begin

    @property
    def waiting(self) -> Ints:
        """By node, before it begins."""
        return self.begin - self.ready


def paths(graph: Graph, begin: Ints, end: Ints, step_begin: Ints, step_end: Ints) -> list[Path | None]:
    """A path of each step; None where a step has no call of any node.

    `begin` and `end` are by step and node; a negative begin marks a node without a call.
    """
    last = _last_needed(graph, begin, end)
    return [
        _walked(begin[step], end[step], last[step], int(step_begin[step]), int(step_end[step]))
        for step in range(len(step_begin))
    ]


def _last_needed(graph: Graph, begin: Ints, end: Ints) -> Ints:
    """By step and node: of the nodes with a call that it needs, through others without one, that which ended last."""
    steps = len(begin)
    rows = np.arange(steps)
    ended = np.full((steps, graph.count), NEVER)  # of the node, or of what it passes on
    carrier = np.full((steps, graph.count), NONE)  # the node with a call whose end that is
    found = np.full((steps, graph.count), NONE)
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


def _walked(begin: Ints, end: Ints, last: Ints, step_begin: int, step_end: int) -> Path | None:
    """Walk back from the node that ended last; `until` is the moment to which everything is accounted for."""
    there = begin >= 0
    if not there.any():
        return None
    node = int(np.where(there, end, NEVER).argmax())
    until = min(int(end[node]), step_end)
    after = step_end - until
    nodes: list[int] = []
    begins: list[int] = []
    ends: list[int] = []
    readies: list[int] = []
    while True:
        finished = max(min(int(end[node]), until), step_begin)
        if nodes:
            readies.append(finished)
        started = max(min(int(begin[node]), finished), step_begin)
        nodes.append(node)
        begins.append(started)
        ends.append(finished)
        until = started
        node = int(last[node])
        if node == NONE:
            break
    first = min(max(int(begin[there].min()), step_begin), until)  # the step's first node of all: the graph has begun
    readies.append(first)
    forward = [np.array(each[::-1], np.int64) for each in (nodes, begins, ends, readies)]
    return Path(forward[0], forward[1], forward[2], forward[3], first - step_begin, after)
