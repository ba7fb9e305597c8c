"""Calls of a trace beside the nodes of a graph: when each node ran in each step, and on which thread; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.dataflow.work import Graph
from castmates.analysis.explanations.layers import RUNTIME
from castmates.analysis.operations.per_trace import WAITING

Ints = npt.NDArray[np.int64]
FETCH = "IteratorGetNext"
NODE = ["operation", "type", "layer", "layer_kind", "direction"]
ABSENT = -1


@dataclass(frozen=True)
class Nodes:
    """The nodes of a lead's graph, and the graph."""

    table: pd.DataFrame  # NODE and what else is known, in the order of the graph's nodes
    graph: Graph
    batch: bool  # whether node 0 was put before all: the wait for the batch, which the program makes outside


def nodes_of(nodes: pd.DataFrame, edges: pd.DataFrame) -> Nodes:
    """A graph in which the batch comes first, where no node of it fetches the batch."""
    table = nodes.sort_values("node").reset_index(drop=True)
    source, target = (edges[name].to_numpy(np.int64) for name in ("from", "to"))
    if (table["type"] == FETCH).any():
        return Nodes(table, Graph(len(table), source, target), False)
    first = {
        "operation": FETCH,
        "type": FETCH,
        "name": FETCH,
        "layer": WAITING,
        "layer_kind": "input",
        "direction": "input",
    }
    table = pd.concat([pd.DataFrame([first | {"node": ABSENT}]), table], ignore_index=True)
    source, target = source + 1, target + 1
    roots = np.setdiff1d(np.arange(1, len(table)), target)
    both = Graph(len(table), np.concatenate([source, 0 * roots]), np.concatenate([target, roots]))
    return Nodes(table, both, True)


@dataclass(frozen=True)
class Steps:
    """The steps of a trace, in whole nanoseconds; what is by step and node is -1 where a node has no call."""

    step_begin: Ints
    step_end: Ints
    begin: Ints
    end: Ints
    thread: Ints  # places in `threads`
    threads: list[str]
    joined: float  # share of the operations' time that the graph's nodes account for
    calls: "Busy"
    work: Ints  # all calls of the node in the step together, 0 where it has none

    @property
    def duration(self) -> Ints:
        """By step and node: how long it was at work, at most from its first call to its last."""
        return np.minimum(self.work, np.where(self.begin >= 0, self.end - self.begin, 0))


@dataclass(frozen=True)
class Busy:
    """What threads work on: calls of one thread that do not overlap, sorted, one thread after the other."""

    first: Ints  # by thread: the place of its first call
    thread: Ints
    begin: Ints
    end: Ints
    node: Ints  # -1: no node of the graph
    of: Mapping[tuple[int, int], list[int]]  # by step and node: the places of its calls, in the order of time


def joined_steps(nodes: Nodes, calls: pd.DataFrame, steps: pd.DataFrame) -> Steps:
    """Put a trace's calls beside the nodes, by name and type; a node with several calls in a step spans all of them."""
    steps = steps.sort_values("step")
    step_begin = steps["begin_ns"].to_numpy(np.int64)
    step_end = step_begin + steps["duration_ns"].to_numpy(np.int64)
    works = calls[_of_the_model(calls)]
    node = _node_of(nodes.table, works)
    step = works["step"].to_numpy(np.int64)
    begin = works["begin_ns"].to_numpy(np.int64)
    end = begin + works["duration_ns"].to_numpy(np.int64)
    codes, threads = pd.factorize(works["thread"].astype("str"))
    thread = codes.astype(np.int64)
    shape = (len(step_begin), nodes.graph.count)
    begins, ends, threads_of = np.full(shape, np.iinfo(np.int64).max), np.full(shape, ABSENT), np.full(shape, ABSENT)
    inside = (node != ABSENT) & (step >= 0) & (step < len(step_begin))
    at = (step[inside], node[inside])
    np.minimum.at(begins, at, begin[inside])
    np.maximum.at(ends, at, end[inside])
    threads_of[at] = thread[inside]
    work = np.zeros(shape, np.int64)
    np.add.at(work, at, (end - begin)[inside])
    begins = np.where(ends == ABSENT, ABSENT, begins)
    in_steps = step >= 0
    length = (end - begin)[in_steps].sum()
    share = float((end - begin)[inside].sum() / length) if length else 0.0
    busy = _busy(thread, begin, end, np.where(inside, node, ABSENT), step, len(threads))
    return Steps(step_begin, step_end, begins, ends, threads_of, list(threads), share, busy, work)


def _of_the_model(calls: pd.DataFrame) -> "pd.Series[bool]":
    """Neither what lies between operations nor the input pipeline's own work, which goes on beside the step."""
    of_input = (calls["direction"] == "input") & (calls["layer"] != WAITING)
    return (calls["layer_kind"] != RUNTIME) & ~of_input


def _node_of(table: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """The node of each call; of several with one name and type, the first."""
    known = table[["operation", "type"]].astype("str").assign(node=np.arange(len(table)))
    known = known.drop_duplicates(["operation", "type"])
    names = calls[["operation", "type"]].astype("str")
    found = names.merge(known, "left", ["operation", "type"])["node"]
    return found.fillna(ABSENT).to_numpy(np.int64)


def _busy(thread: Ints, begin: Ints, end: Ints, node: Ints, step: Ints, threads: int) -> Busy:
    """Without calls inside of others; a call of no node counts as nothing where calls of nodes lie inside of it."""
    order = np.lexsort((-end, begin, thread))
    order = order[~_holds_nodes(*(each[order] for each in (thread, begin, end, node)))]
    thread, begin, end, node, step = (each[order] for each in (thread, begin, end, node, step))
    outer = np.ones(len(begin), bool)
    for one in range(threads):
        at = np.flatnonzero(thread == one)
        before = np.maximum.accumulate(end[at])[:-1]
        outer[at[1:]] = begin[at[1:]] >= before
    place = np.cumsum(outer) - 1  # of the outermost call around each
    of: dict[tuple[int, int], list[int]] = {}
    for at in np.argsort(begin, kind="stable").tolist():
        if node[at] != ABSENT:
            of.setdefault((int(step[at]), int(node[at])), []).append(int(place[at]))
    thread, begin, end, node = (each[outer] for each in (thread, begin, end, node))
    return Busy(np.searchsorted(thread, np.arange(threads)), thread, begin, end, node, of)


def _holds_nodes(thread: Ints, begin: Ints, end: Ints, node: Ints) -> npt.NDArray[np.bool_]:
    """Which calls are of no node, and have one of a node inside."""
    known = np.flatnonzero(node != ABSENT)
    at = np.searchsorted(known, np.arange(len(node)), "right")
    found: npt.NDArray[np.bool_] = (node == ABSENT) & (at < len(known))
    inner = known[at[found]]
    found[found] = (thread[inner] == thread[found]) & (begin[inner] < end[found])
    return found
