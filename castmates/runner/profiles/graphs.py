"""The graph of the lead's step, as the rows that a profile launch leaves of it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from castmates.analysis.dataflow.work import work_of
from castmates.analysis.explanations.layers import layer_place, optimizer_scopes
from castmates.errors import CastmatesError
from castmates.files import replace
from castmates.results.columns.dataflow import LAUNCH_GRAPH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.runner.profiles.taken import Profiled
from castmates.runner.tracing.recorded import Traced
from castmates.traces.graphs import CONTROL, StepGraph, read_graph, words_of

NONE_LEFT = "the lead leaves no graph of its step (castmates help tracing-graph)"
Row = dict[str, Any]


def write(outcome: Profiled | Traced, folder: Path) -> dict[str, Any]:
    """Write the tables of the graph, or remove those of another launch; what the record has of it."""
    try:
        if outcome.graph is None:
            raise CastmatesError(NONE_LEFT)
        graph = read_graph(outcome.graph)
    except CastmatesError as problem:
        for name in LAUNCH_GRAPH_TABLES:
            (folder / f"{name}.parquet").unlink(missing_ok=True)
        return {"reason": str(problem)}
    common = {
        "study": outcome.launch.study,
        "cohort": outcome.launch.cohort.id,
        "launch": outcome.launch.number,
        "member": outcome.launch.cohort.lead.name,
        "platform": outcome.platform,
    }
    rows = {"graph_nodes": list(_nodes(graph, common)), "graph_edges": list(_edges(graph, common))}
    for name, columns in LAUNCH_GRAPH_TABLES.items():
        writing: Callable[[Path], None] = partial(write_rows, rows[name], columns)
        replace(folder / f"{name}.parquet", writing)
    return {
        "reason": "",
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "other_graphs": graph.other_graphs,  # smaller ones, such as of the input, which are not in the tables
        "other_nodes": graph.other_nodes,
    }


def _nodes(graph: StepGraph, common: Row) -> Iterator[Row]:
    optimizers = optimizer_scopes((node.name, node.does.type) for node in graph.nodes)
    for number, node in enumerate(graph.nodes):
        place, work = layer_place(node.name, node.does.type, optimizers=optimizers), work_of(node.does)
        yield common | {
            "node": number,
            "name": node.name,
            "operation": node.operation,
            "type": node.does.type,
            "layer": place.layer,
            "layer_kind": place.kind,
            "direction": place.direction,
            "device": node.device,
            "inputs": words_of(node.does.inputs),
            "outputs": words_of(node.does.outputs),
            "flops": work.flops,
            "bytes": work.bytes,
            "source": "estimated",
        }


def _edges(graph: StepGraph, common: Row) -> Iterator[Row]:
    for source, target, output in graph.edges:
        kind = "control" if output == CONTROL else "data"
        yield common | {"from": source, "to": target, "kind": kind, "output": output}
