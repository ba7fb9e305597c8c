"""Paths of traces -> rows by scene: what steps consist of along their path, and each operation's part in it.

And the graph of each lead with what its nodes took: a row per node, and per edge.
"""

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.dataflow.join import NODE
from castmates.analysis.dataflow.per_trace import NUMBERS, PathTraces
from castmates.analysis.keys import LAUNCH, LEAD, MIX, SCENE, SCENE_ROUND
from castmates.analysis.operations.over_traces import in_every_trace, lead_alone, longest_first
from castmates.study.spec import UNMANAGED

COMPUTED = "computed"  # what bounds are
OF_NODES = ["on_schedule_path", "path_ms", "ms", "waiting_ms", "on_graph_path"]  # 0 in a trace without the operation
KEY = [*LEAD, "operation", "type"]
# Of a node without a call.
UNTRACED = {"ms": 0.0, "on_schedule_path": 0.0, "graph_slack_ms": np.nan, "lost_ms": np.nan, "on_graph_path": 0.0}


def critical_path(paths: PathTraces) -> pd.DataFrame:
    """A row per scene, also where there is no path; traces are averaged over a launch, and launches over the scene."""
    table = paths.traces
    if table.empty:
        return pd.DataFrame()
    whole = table[table["reason"] == ""]
    whole = whole.reindex(columns=[*table.columns, *(name for name in NUMBERS if name not in table)])  # no path at all
    every = table.groupby(SCENE).agg(joined=("joined", "min"), threads=("threads", "max"))
    steps = whole.groupby(SCENE)["steps"].sum()
    reasons = table[table["reason"] != ""].groupby(SCENE)["reason"].first()
    found = every.join(steps).join(launch_means(whole, SCENE, NUMBERS)).join(reasons).reset_index()
    found[["steps", "launches"]] = found[["steps", "launches"]].fillna(0).astype("int64")
    found["reason"] = found["reason"].fillna("").where(found["launches"] == 0, "")
    return found.assign(bounds=COMPUTED)


def path_operations(paths: PathTraces) -> pd.DataFrame:
    """A row per scene and operation of the graph that has a call."""
    operations, traces = paths.operations, paths.traces
    if operations.empty:
        return pd.DataFrame()
    every = in_every_trace(operations, traces.loc[traces["reason"] == "", SCENE_ROUND], NODE, OF_NODES)
    found = launch_means(every, [*SCENE, *NODE], [*OF_NODES, "graph_slack_ms"])
    found = found.join(every.groupby([*SCENE, *NODE])["thread"].first())
    return longest_first(found.reset_index(), "path_ms")


def study_nodes(nodes: pd.DataFrame, paths: PathTraces) -> pd.DataFrame:
    """Nodes with their times alone, and what they lose beside the mix in which the step is longest."""
    table = nodes.drop(columns=LAUNCH).astype(dict.fromkeys(KEY, "str"))
    called = ~table.duplicated(KEY)  # of several nodes with one name and type, calls are the first one's
    operations = path_operations(paths)
    if operations.empty:
        return table.assign(**UNTRACED, beside="")
    alone = operations[lead_alone(operations)].set_index(KEY)[
        ["ms", "on_schedule_path", "graph_slack_ms", "on_graph_path"]
    ]
    worst = _worst(paths)
    beside = operations.merge(worst, on=[*LEAD, *MIX]).set_index(KEY)["ms"]
    table = table.join(alone, on=KEY).join(beside.sub(alone["ms"], fill_value=0.0).rename("lost_ms"), on=KEY)
    table = table.join(worst.set_index(LEAD)["mix"].rename("beside"), on=LEAD).fillna(
        {"beside": "", "ms": 0.0, "on_schedule_path": 0.0, "on_graph_path": 0.0}
    )
    for name, nothing in UNTRACED.items():
        table.loc[~called, name] = nothing
    return table


def study_edges(edges: pd.DataFrame) -> pd.DataFrame:
    """Edges of each lead's graph."""
    return edges.drop(columns=LAUNCH)


def _worst(paths: PathTraces) -> pd.DataFrame:
    """By lead: the mix, without a partition, beside which its traced steps are longest."""
    traces = paths.traces[(paths.traces["reason"] == "") & (paths.traces["kind"] == "corun")]
    traces = traces[traces["partition"] == UNMANAGED]
    means = traces.groupby([*LEAD, *MIX])["step_ms"].mean().reset_index()
    return means.sort_values("step_ms").drop_duplicates(LEAD, keep="last")[[*LEAD, *MIX]]
