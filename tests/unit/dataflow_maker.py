"""Random graphs, and an executor of them whose steps, paths and waits are known: it writes down what it does."""

from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.effects import path_changes, path_effects
from castmates.analysis.dataflow.summary import (
    PathTraces,
    critical_path,
    path_operations,
    path_traces,
    study_edges,
    study_nodes,
)
from castmates.analysis.dataflow.work import Graph
from castmates.analysis.operations.per_trace import WAITING
from castmates.report.results import Results, read_results
from tests.unit.results_maker import make


@dataclass
class Ran:
    """What an executor did in one step; times from the step's begin on."""

    begin: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    bounded_by: list[int]  # by node: the node at whose end it began, because it needed it or its thread; -1: none
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
    bounded_by, last = [-1] * graph.count, -1
    left = [len(needs) for needs in graph.needs]
    ready = [node for node in range(graph.count) if not left[node]]
    free, running, now = list(range(threads)), [], at
    while ready or running:
        while ready and free:
            node = ready.pop(int(dice.integers(len(ready))))
            thread[node] = free.pop()
            begin[node] = now + int(dice.integers(latency))
            end[node], bounded_by[node] = begin[node] + duration[node], last
            heappush(running, (int(end[node]), node))
        now, last = heappop(running)
        free.append(int(thread[last]))
        for other in graph.needed_by[last].tolist():
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    over = int(end.max()) if graph.count else at
    return Ran(begin, end, thread, bounded_by, at - int(dice.integers(50)), over + int(dice.integers(50)))


def tables(graph: Graph, runs: list[Ran], scene: str = "alone", launch: int = 1, repetition: int = 1, threads: int = 1):
    """The same as a profile launch leaves it: calls and steps of a trace."""
    kind, mix = ("alone", "") if scene == "alone" else ("corun", scene.removeprefix("corun:"))
    common = {
        "study": "s", "cohort": "c", "launch": launch, "scene": scene, "kind": kind, "mix": mix,
        "partition": "unmanaged", "member": "lead@0", "platform": "modelled", "round": repetition,
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


@cache
def study(slower: float = 1.5, threads: int = 1, launches: int = 3) -> tuple[PathTraces, pd.DataFrame, pd.DataFrame]:
    """Launches with two rounds, alone and beside an antagonist that makes all nodes slower; and the graph's tables."""
    parts, graph = [], random_graph(np.random.default_rng(1), 30, 60)
    for launch in range(1, launches + 1):
        dice = np.random.default_rng(launch)
        took = dice.integers(10_000, 90_000, 30)
        calls, steps = [], []
        for scene, factor in (("alone", 1.0), ("corun:lead@0+stream@1", slower)):
            for repetition in (1, 2):
                runs, at = [], 1000
                for each in dice.uniform(0.95, 1.05, (4, 30)):
                    runs.append(executed(graph, (took * factor * each).astype(int), threads, dice, at))
                    at = runs[-1].step_end + 100
                one = tables(graph, runs, scene, launch, repetition, threads)
                calls.append(one[0])
                steps.append(one[1])
        parts.append(path_traces(pd.concat(calls), pd.concat(steps), *graph_tables(graph)))
    return PathTraces.together(parts), *graph_tables(graph)


def results(folder: Path, launches: int = 3) -> Results:
    """A study whose lead left its graph."""
    paths, nodes, edges = study(launches=launches)
    nodes = nodes.assign(study="s", cohort="c", launch=1, member="lead@0", platform="modelled", device="CPU:0")
    nodes = nodes.assign(inputs="", outputs="float32[8,8]", flops=2.0, bytes=float("nan"), source="estimated")
    edges = edges.assign(study="s", cohort="c", launch=1, member="lead@0", platform="modelled")
    return replace(
        read_results(make(folder, launches=3, rounds=1)),
        dataflow_nodes=study_nodes(nodes, paths),
        dataflow_edges=study_edges(edges),
        critical_path=critical_path(paths),
        path_operations=path_operations(paths),
        path_effects=path_effects(paths),
        path_changes=path_changes(paths),
    )


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
