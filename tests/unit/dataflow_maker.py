"""Random graphs, and an executor of them whose steps, paths and waits are known: it writes down what it does."""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.graph import Graph
from castmates.analysis.operations.per_trace import WAITING


@dataclass
class Ran:
    """What an executor did in one step; times from the step's begin on."""

    begin: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    enabled_by: list[int]  # by node: the node whose end made it ready; -1 for none
    step_begin: int
    step_end: int


def random_graph(dice: np.random.Generator, count: int, edges: int) -> Graph:
    """A graph with edges from lower to higher numbers."""
    if count < 2:
        return Graph(count, np.empty(0, np.int64), np.empty(0, np.int64))
    ends = dice.integers(0, count, (edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return Graph(count, ends.min(axis=1), ends.max(axis=1))


def executed(
    graph: Graph, duration: np.ndarray, threads: int, dice: np.random.Generator, at: int = 1000, latency: int = 7
) -> Ran:
    """Run a graph: ready nodes in random order, on as many threads, each begin a little after it could be."""
    begin, end, thread = np.full((3, graph.count), -1)
    enabled = [-1] * graph.count
    left = [len(needs) for needs in graph.needs]
    ready = [node for node in range(graph.count) if not left[node]]
    free, running, now = list(range(threads)), [], at
    while ready or running:
        while ready and free:
            node = ready.pop(int(dice.integers(len(ready))))
            thread[node] = free.pop()
            begin[node] = now + int(dice.integers(latency))
            end[node] = begin[node] + duration[node]
            heappush(running, (int(end[node]), node))
        now, node = heappop(running)
        free.append(int(thread[node]))
        for other in graph.needed_by[node].tolist():
            left[other] -= 1
            if not left[other]:
                enabled[other] = node
                ready.append(other)
    last = int(end.max()) if graph.count else at
    return Ran(begin, end, thread, enabled, at - int(dice.integers(50)), last + int(dice.integers(50)))


def tables(graph: Graph, runs: list[Ran], scene: str = "solo", launch: int = 1, repetition: int = 1, threads: int = 1):
    """The same as a profile launch leaves it: calls and steps of a trace."""
    kind, mix = ("solo", "") if scene == "solo" else ("corun", scene.removeprefix("corun:"))
    common = {
        "study": "s", "company": "c", "launch": launch, "scene": scene, "kind": kind, "mix": mix,
        "partition": "unmanaged", "member": "lead@0", "platform": "modelled", "repetition": repetition,
    }  # fmt: skip
    steps = [
        common | {"part": "traced", "step": step, "begin_ns": run.step_begin, "threads_intra": 1}
        | {"duration_ns": run.step_end - run.step_begin, "threads_inter": threads}
        for step, run in enumerate(runs)
    ]  # fmt: skip
    calls = [
        common | called(node) | {"step": step, "thread": f"pool/{run.thread[node]}", "begin_ns": int(run.begin[node])}
        | {"duration_ns": int(run.end[node] - run.begin[node]), "parent": -1}
        for step, run in enumerate(runs)
        for node in range(graph.count)
        if run.begin[node] >= 0
    ]  # fmt: skip
    return pd.DataFrame(calls), pd.DataFrame(steps)


def called(node: int) -> dict[str, str]:
    """What a node is called; the first waits for the batch."""
    if node == 0:
        names = {"operation": "IteratorGetNext", "type": "IteratorGetNext", "layer": WAITING, "layer_kind": "input"}
        return names | {"direction": "input"}
    return {
        "operation": f"layer/op_{node}", "type": "MatMul", "layer": "layer", "layer_kind": "matmul",
        "direction": "forward",
    }  # fmt: skip


def graph_tables(graph: Graph):
    """A graph as a profile launch leaves it."""
    nodes = [called(node) | {"node": node, "name": called(node)["operation"]} for node in range(graph.count)]
    edges = {"from": graph.source, "to": graph.target, "kind": "data", "output": 0}
    return pd.DataFrame(nodes), pd.DataFrame(edges)
