"""The data contract of dataflow graphs: what a profile launch leaves of its lead's graph, and the study's tables of it.

Floating-point operations, bytes and bounds are estimated or computed,
never measured: `source` names them so.
"""

from functools import partial

from castmates.results.columns.contract import Table, by_name, col, interval, usual
from castmates.results.columns.scenes import SCENE
from castmates.study import capabilities

_LAUNCH = (*usual("study cohort launch member"),)

_NODE = (
    col("node", int, "from 0; every node comes after those that it needs"),
    col("name", str, "in the graph, with the functions around it"),
    col("operation", str, "as calls are named in operations.parquet"),
    *usual("type layer layer_kind"),
    col("direction", str, "forward, backward, optimizer, input"),
    col("device", str, "CPU:0, GPU:0"),
    col("inputs", str, 'float32[256,32] of each, joined by "; "; ? for what is not known, * for what a variable holds'),
    col("outputs", str, "that it gives, written likewise"),
    col("flops", float, "floating-point operations, estimated; NaN: not known"),
    col("bytes", float, "that it takes and gives, each operand once, estimated; NaN: not known"),
    col("source", str, "of the two: estimated"),
)

_EDGE = (
    col("from", int, "node that is needed"),
    col("to", int, "node that needs it"),
    col("kind", str, "data, control (it must only be over)"),
    col("output", int, "which of its outputs; -1 of control"),
)

GRAPH_NODES = Table(
    "graph_nodes",
    "profiles/<cohort>/<n>/graph_nodes.parquet: a row per node of the lead's step, as TensorFlow optimised it.",
    *_LAUNCH,
    *_NODE,
    *usual("platform"),
)

GRAPH_EDGES = Table(
    "graph_edges",
    "profiles/<cohort>/<n>/graph_edges.parquet: a row per edge: what needs what.",
    *_LAUNCH,
    *_EDGE,
    *usual("platform"),
)

LAUNCH_GRAPH_TABLES = by_name(GRAPH_NODES, GRAPH_EDGES)

_profile_table = partial(Table, rule="estimate_operations", asked=capabilities.PROFILE)

DATAFLOW_NODES = _profile_table(
    "dataflow_nodes",
    "tables/dataflow_nodes.csv: a row per lead and node of its graph; of the first launch that has one.",
    *usual("study member"),
    *_NODE,
    *usual("platform"),
    col("ms", float, "of a step alone, between its begin and its end; 0 where traces have no call of it"),
    col("on_schedule_path", float, "share of the steps alone in which it is on the path of the schedule"),
    col("graph_slack_ms", float, "alone: how much longer it could take before the path of the graph grows; computed"),
    col("lost_ms", float, "how much longer it takes beside the mix in which the step is longest"),
    col("beside", str, "that mix"),
    col("on_graph_path", float, "share of the steps alone in which it is on the path of the graph: it has no slack"),
    estimate="dataflow.summary:study_nodes",
)

DATAFLOW_EDGES = _profile_table(
    "dataflow_edges",
    "tables/dataflow_edges.csv: a row per lead and edge.",
    *usual("study member"),
    *_EDGE,
    *usual("platform"),
    estimate="dataflow.summary:study_edges",
)

CRITICAL_PATH = _profile_table(
    "critical_path",
    "tables/critical_path.csv: a row per scene: its steps along the path of the schedule; means over launches.",
    *SCENE,
    *usual("launches"),
    col("steps", int, "that were traced"),
    col("joined", float, "share of the operations' time that nodes of the graph account for"),
    col("reason", str, 'why there is no path; "" where there is'),
    col("step_ms", float, "the next six add up to it"),
    col("before_ms", float, "the first node of the path"),
    col("batch_ms", float, "waits for the batch"),
    col("compute_ms", float, "nodes on the path"),
    col("other_ms", float, "operations on the path that are no nodes of the graph"),
    col("idle_ms", float, "the next operation is ready, and the thread that runs it works on none"),
    col("after_ms", float, "the last node"),
    col("nodes", float, "on the path"),
    col("threads", int, "of operations side by side"),
    col("work_ms", float, "of all nodes together"),
    col("graph_path_ms", float, "bound by the graph: its path, with these times and a thread for each node"),
    col("per_thread_ms", float, "bound by the threads: the work, divided among them evenly"),
    col("bounds", str, "what these two are: computed"),
    estimate="dataflow.summary:critical_path",
)

PATH_OPERATIONS = _profile_table(
    "path_operations",
    "tables/path_operations.csv: a row per scene and operation of the graph with a call; milliseconds, means over"
    " launches.",
    *SCENE,
    *usual("operation type layer layer_kind"),
    col("direction", str, "forward, backward, optimizer, input"),
    col("thread", str, "pool that it ran on"),
    col("on_schedule_path", float, "share of steps in which it is on the path of the schedule"),
    col("path_ms", float, "of a step, while on the path of the schedule"),
    col("ms", float, "of a step, on the path or not"),
    col("waiting_ms", float, "of a step, on the path of the schedule, from what was in its way until it began"),
    col("on_graph_path", float, "share of steps in which it is on the path of the graph: it has no slack"),
    col("graph_slack_ms", float, "how much longer it could take before the path of the graph grows; computed"),
    *usual("launches"),
    estimate="dataflow.summary:path_operations",
)

PATH_EFFECTS = _profile_table(
    "path_effects",
    "tables/path_effects.csv: a row per mix, partition and part of the step's difference; parts add up to the step.",
    *usual("study mix partition member"),
    col("part", str, "step; before, batch, slower, path, other, idle, after: docs/tracing-graph.md"),
    col("alone_ms", float, "of a step alone; NaN where the part has none"),
    col("ms", float, "of a step beside others"),
    *interval("difference_ms", "", "95 % between launches", stem="difference"),
    *usual("launches"),
    col("traces", int, "rounds of traces, over all launches"),
    *usual("platform"),
    estimate="dataflow.effects:path_effects",
)

PATH_CHANGES = _profile_table(
    "path_changes",
    "tables/path_changes.csv: a row per mix, partition and operation that changes; columns add up to parts of "
    "path_effects.",
    *usual("study mix partition member operation type"),
    col("direction", str, "forward, backward, optimizer, input"),
    col("alone_on_schedule_path", float, "share of steps alone"),
    col("on_schedule_path", float, "share of steps beside others"),
    col("change", str, "enters, leaves, stays"),
    col("slower_ms", float, "of a step: what it takes longer while on the path"),
    col("path_ms", float, "of a step: what it adds because it is on the path more often; negative: less often"),
    *usual("launches platform"),
    estimate="dataflow.effects:path_changes",
)
