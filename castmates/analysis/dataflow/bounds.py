"""What a step takes at least by its graph, with the times that its nodes took, and how much slack each node has; pure.

These are computed bounds, and no measurement: with more threads, nodes would take other times than they did.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from castmates.analysis.dataflow.graph import Graph

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bounds:
    """By step, in the unit of the durations."""

    longest: Ints  # the longest path: no number of threads makes the step shorter
    work: Ints  # all nodes together
    slack: Ints  # by step and node: how much longer it could take before the longest path grows


def bounds(graph: Graph, duration: Ints, work: Ints | None = None) -> Bounds:
    """Earliest and latest ends of all nodes; `duration` by step and node, 0 for what took no time.

    `work` is given where it is more than the duration, because calls of a node overlap.
    """
    steps = len(duration)
    end, tail = np.zeros((2, steps, graph.count), np.int64)
    for node, needs in enumerate(graph.needs):
        ready = end[:, needs].max(axis=1) if len(needs) else 0
        end[:, node] = ready + duration[:, node]
    for node in range(graph.count - 1, -1, -1):
        after = graph.needed_by[node]
        if len(after):
            tail[:, node] = (tail[:, after] + duration[:, after]).max(axis=1)
    longest = end.max(axis=1) if graph.count else np.zeros(steps, np.int64)
    return Bounds(longest, (duration if work is None else work).sum(axis=1), longest[:, None] - end - tail)
