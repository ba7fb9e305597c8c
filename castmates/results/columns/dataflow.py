"""The data contract of dataflow graphs: what a profile launch leaves of its lead's graph, and the study's tables of it.

Floating-point operations, bytes and bounds are estimated or computed, never measured: `source` names them so.
"""

from collections.abc import Mapping

from castmates.results.columns.block import Columns
from castmates.results.columns.scenes import SCENE

_LAUNCH: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",  # number of the profile launch within its company, from 1
    "member": "str",
}

_NODE: Columns = {
    "node": "int64",  # from 0; every node comes after those that it needs
    "name": "str",  # in the graph, with the functions around it
    "operation": "str",  # as calls are named in operations.parquet
    "type": "str",
    "layer": "str",  # scope
    "layer_kind": "str",  # convolution, pooling, attention …
    "direction": "str",  # forward, backward, optimizer, input
    "device": "str",  # CPU:0, GPU:0
    "inputs": "str",  # float32[256,32] of each, joined by "; "; ? for what is not known, * for what a variable holds
    "outputs": "str",  # that it gives, written likewise
    "flops": "float64",  # floating-point operations, estimated; NaN: not known
    "bytes": "float64",  # that it takes and gives, each operand once, estimated; NaN: not known
    "source": "str",  # of the two: estimated
}

_EDGE: Columns = {
    "from": "int64",  # node that is needed
    "to": "int64",  # node that needs it
    "kind": "str",  # data, control (it must only be over)
    "output": "int64",  # which of its outputs; -1 of control
}

# profiles/<company>/<n>/graph_nodes.parquet: a row per node of the lead's step, as TensorFlow optimised it.
GRAPH_NODES: Columns = {**_LAUNCH, **_NODE, "platform": "str"}

# profiles/<company>/<n>/graph_edges.parquet: a row per edge: what needs what.
GRAPH_EDGES: Columns = {**_LAUNCH, **_EDGE, "platform": "str"}

LAUNCH_GRAPH_TABLES: Mapping[str, Columns] = {"graph_nodes": GRAPH_NODES, "graph_edges": GRAPH_EDGES}

# tables/dataflow_nodes.csv: a row per lead and node of its graph; of the first launch that has one.
DATAFLOW_NODES: Columns = {
    "study": "str",
    "member": "str",
    **_NODE,
    "platform": "str",
    "ms": "float64",  # of a step alone, between its begin and its end; 0 where traces have no call of it
    "on_schedule_path": "float64",  # share of the steps alone in which it is on the path of the schedule
    "graph_slack_ms": "float64",  # alone: how much longer it could take before the path of the graph grows; computed
    "lost_ms": "float64",  # how much longer it takes beside the mix in which the step is longest
    "beside": "str",  # that mix
    "on_graph_path": "float64",  # share of the steps alone in which it is on the path of the graph: it has no slack
}

# tables/dataflow_edges.csv: a row per lead and edge.
DATAFLOW_EDGES: Columns = {"study": "str", "member": "str", **_EDGE, "platform": "str"}

# tables/critical_path.csv: a row per scene: its steps along the path of the schedule; means over launches.
CRITICAL_PATH: Columns = {
    **SCENE,
    "launches": "int64",
    "steps": "int64",  # that were traced
    "joined": "float64",  # share of the operations' time that nodes of the graph account for
    "reason": "str",  # why there is no path; "" where there is
    "step_ms": "float64",  # the next six add up to it
    "before_ms": "float64",  # the first node of the path
    "batch_ms": "float64",  # waits for the batch
    "compute_ms": "float64",  # nodes on the path
    "other_ms": "float64",  # operations on the path that are no nodes of the graph
    "idle_ms": "float64",  # the next operation is ready, and the thread that runs it works on none
    "after_ms": "float64",  # the last node
    "nodes": "float64",  # on the path
    "threads": "int64",  # of operations side by side
    "work_ms": "float64",  # of all nodes together
    "graph_path_ms": "float64",  # bound by the graph: its path, with these times and a thread for each node
    "per_thread_ms": "float64",  # bound by the threads: the work, divided among them evenly
    "bounds": "str",  # what these two are: computed
}

# tables/path_operations.csv: a row per scene and operation of the graph with a call; milliseconds, means over launches.
PATH_OPERATIONS: Columns = {
    **SCENE,
    "operation": "str",  # with its scopes
    "type": "str",
    "layer": "str",  # scope
    "layer_kind": "str",  # convolution, pooling, attention …
    "direction": "str",  # forward, backward, optimizer, input
    "thread": "str",  # pool that it ran on
    "on_schedule_path": "float64",  # share of steps in which it is on the path of the schedule
    "path_ms": "float64",  # of a step, while on the path of the schedule
    "ms": "float64",  # of a step, on the path or not
    "waiting_ms": "float64",  # of a step, on the path of the schedule, from what was in its way until it began
    "on_graph_path": "float64",  # share of steps in which it is on the path of the graph: it has no slack
    "graph_slack_ms": "float64",  # how much longer it could take before the path of the graph grows; computed
    "launches": "int64",
}

# tables/path_effects.csv: a row per mix, partition and part of the step's difference; parts add up to the step.
PATH_EFFECTS: Columns = {
    "study": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "part": "str",  # step; before, batch, slower, path, other, idle, after: docs/tracing-graph.md
    "solo_ms": "float64",  # of a step alone; NaN where the part has none
    "ms": "float64",  # of a step beside others
    "difference_ms": "float64",
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
    "launches": "int64",
    "traces": "int64",  # rounds of traces, over all launches
    "platform": "str",
}

# tables/path_changes.csv: a row per mix, partition and operation that changes; columns add up to parts of path_effects.
PATH_CHANGES: Columns = {
    "study": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "operation": "str",  # with its scopes
    "type": "str",
    "direction": "str",  # forward, backward, optimizer, input
    "solo_on_schedule_path": "float64",  # share of steps alone
    "on_schedule_path": "float64",  # share of steps beside others
    "change": "str",  # enters, leaves, stays
    "slower_ms": "float64",  # of a step: what it takes longer while on the path
    "path_ms": "float64",  # of a step: what it adds because it is on the path more often; negative: less often
    "launches": "int64",
    "platform": "str",
}

DATAFLOW_TABLES: Mapping[str, Columns] = {
    "dataflow_nodes": DATAFLOW_NODES,
    "dataflow_edges": DATAFLOW_EDGES,
    "critical_path": CRITICAL_PATH,
    "path_operations": PATH_OPERATIONS,
    "path_effects": PATH_EFFECTS,
    "path_changes": PATH_CHANGES,
}
