"""The tables of `Results` on graphs and critical paths."""

# ruff: noqa: RUF009 (a StudyTable is a descriptor, and no default that results would share)

from dataclasses import dataclass

from castmates.report.study_table import StudyTable
from castmates.results.columns import dataflow


@dataclass(frozen=True, kw_only=True)
class PathTables:
    """What traced leads left of their graphs, and what is made of it."""

    dataflow_nodes: StudyTable = StudyTable("dataflow_nodes", dataflow.DATAFLOW_NODES, later=True)
    """The graph of each lead's step; below, the critical path of steps, and what changes in it beside others."""
    dataflow_edges: StudyTable = StudyTable("dataflow_edges", dataflow.DATAFLOW_EDGES, later=True)
    critical_path: StudyTable = StudyTable("critical_path", dataflow.CRITICAL_PATH, later=True)
    path_operations: StudyTable = StudyTable("path_operations", dataflow.PATH_OPERATIONS, later=True)
    path_effects: StudyTable = StudyTable("path_effects", dataflow.PATH_EFFECTS, later=True)
    path_changes: StudyTable = StudyTable("path_changes", dataflow.PATH_CHANGES, later=True)
