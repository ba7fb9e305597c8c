"""Paths of traces -> rows by scene: what steps consist of along their path, and each operation's part in it."""

import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.dataflow.join import NODE
from castmates.analysis.dataflow.per_trace import NUMBERS, PathTraces
from castmates.analysis.keys import SCENE, SCENE_ROUND
from castmates.analysis.operations.over_traces import in_every_trace, longest_first

COMPUTED = "computed"  # what bounds are
OF_NODES = ["on_schedule_path", "path_ms", "ms", "waiting_ms", "on_graph_path"]  # 0 in a trace without the operation


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
