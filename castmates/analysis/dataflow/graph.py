"""A dataflow graph: nodes in an order in which each comes after all that it needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from castmates.errors import CastmatesError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """Nodes 0 … count - 1; every edge leads from a lower number to a higher one."""

    count: int
    source: Ints  # of each edge: the node that is needed, and …
    target: Ints  # … the one that needs it

    def __post_init__(self) -> None:
        ends = np.concatenate([self.source, self.target])
        if len(ends) and (ends.min() < 0 or ends.max() >= self.count):
            raise CastmatesError(f"this graph has an edge to node {ends.max()}, and {self.count} nodes.")
        if (self.source >= self.target).any():
            raise CastmatesError("this graph has edges against the order of its nodes, as where they run in a circle.")

    @cached_property
    def needs(self) -> list[Ints]:
        """By node: those that it needs, each once."""
        return _by(self.count, self.target, self.source)

    @cached_property
    def needed_by(self) -> list[Ints]:
        """By node: those that need it, each once."""
        return _by(self.count, self.source, self.target)


def _by(count: int, keys: Ints, values: Ints) -> list[Ints]:
    pairs = np.unique(np.stack([keys, values], axis=1), axis=0) if len(keys) else np.empty((0, 2), np.int64)
    return np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], np.arange(1, count)))[:count] if count else []


def in_order(names: Sequence[str], edges: Iterable[tuple[int, int]]) -> list[int]:
    """The nodes in an order in which each comes after all that it needs; of those that may come next, the first named.

    A graph that runs in a circle is a sentence.
    """
    from heapq import heapify, heappop, heappush

    later: list[list[int]] = [[] for _ in names]
    waits = [0] * len(names)
    for source, target in set(edges):
        later[source].append(target)
        waits[target] += 1
    free = [node for node, count in enumerate(waits) if not count]
    heapify(free)
    order = []
    while free:
        order.append(heappop(free))
        for target in later[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heappush(free, target)
    if len(order) < len(names):
        stuck = next(node for node, count in enumerate(waits) if count)
        raise CastmatesError(
            f"this graph runs in a circle, which no step can: '{names[stuck]}' needs what comes after it."
        )
    return order
