"""The profile launches that left a graph -> the study's tables of graphs and critical paths; empty without any."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from castmates.analysis.dataflow.effects import path_changes, path_effects
from castmates.analysis.dataflow.nodes import study_edges, study_nodes
from castmates.analysis.dataflow.per_trace import PathTraces, path_traces
from castmates.analysis.dataflow.summary import critical_path, path_operations
from castmates.results.columns.dataflow import GRAPH_NODES
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.profiles import Graph, read_graph, read_profile

Table = Callable[[], pd.DataFrame]


def path_tables(folder: StudyFolder, paths: Sequence[str]) -> Mapping[str, Table]:
    """What makes each table, from the launches at these paths; nothing without a graph."""
    found, graphs = [], []
    for path, graph in _graphs(folder, paths):
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            found.append(path_traces(profile.calls, profile.steps, graph.nodes, graph.edges))
            graphs.append(graph)
    if not found:
        return {}
    every, first = PathTraces.together(found), _of_each_lead(graphs)
    nodes = pd.concat([graph.nodes for graph in first], ignore_index=True)
    edges = pd.concat([graph.edges for graph in first], ignore_index=True)
    return {
        "dataflow_nodes": lambda: study_nodes(nodes, every),
        "dataflow_edges": lambda: study_edges(edges),
        "critical_path": lambda: critical_path(every),
        "path_operations": lambda: path_operations(every),
        "path_effects": lambda: path_effects(every),
        "path_changes": lambda: path_changes(every),
    }


def graph_nodes(folder: StudyFolder, paths: Sequence[str]) -> pd.DataFrame:
    """The nodes of each lead's graph, of the first of these launches that has one."""
    first = _of_each_lead([graph for _, graph in _graphs(folder, paths)])
    return pd.concat([graph.nodes for graph in first], ignore_index=True) if first else frame([], GRAPH_NODES)


def _of_each_lead(graphs: Sequence[Graph]) -> list[Graph]:
    return list({str(graph.nodes["member"].iloc[0]): graph for graph in reversed(graphs)}.values())


def _graphs(folder: StudyFolder, paths: Sequence[str]) -> Iterator[tuple[str, Graph]]:
    for path in paths:
        graph = read_graph(folder.profile(path))
        if graph is not None and len(graph.nodes):
            yield path, graph
