"""Paths of traces -> rows by scene: what steps consist of along their path, and each operation's part in it."""

import pandas as pd

from castmates.analysis.dataflow.join import NODE
from castmates.analysis.dataflow.per_trace import NUMBERS, PathTraces
from castmates.analysis.keys import LAUNCH, ROUND, SCENE
from castmates.study.spec import UNMANAGED

COMPUTED = "computed"  # what bounds are
OF_NODES = ["on_schedule_path", "path_ms", "ms", "waiting_ms", "on_graph_path"]  # 0 in a trace without the operation


def critical_path(paths: PathTraces) -> pd.DataFrame:
    """A row per scene, also where there is no path; traces are averaged over a launch, and launches over the scene."""
    table = paths.traces
    if table.empty:
        return pd.DataFrame()
    whole = table[table["reason"] == ""]
    whole = whole.reindex(columns=[*table.columns, *(name for name in NUMBERS if name not in table)])  # no path at all
    means = whole.groupby([*SCENE, *LAUNCH])[NUMBERS].mean().groupby(SCENE).mean()
    every = table.groupby(SCENE).agg(joined=("joined", "min"), threads=("threads", "max"))
    counts = whole.groupby(SCENE).agg(steps=("steps", "sum"))
    counts["launches"] = whole[[*SCENE, *LAUNCH]].drop_duplicates().groupby(SCENE).size()
    reasons = table[table["reason"] != ""].groupby(SCENE)["reason"].first()
    found = every.join(counts).join(means).join(reasons).reset_index()
    found[["steps", "launches"]] = found[["steps", "launches"]].fillna(0).astype("int64")
    found["reason"] = found["reason"].fillna("").where(found["launches"] == 0, "")
    return found.assign(bounds=COMPUTED)


def path_operations(paths: PathTraces) -> pd.DataFrame:
    """A row per scene and operation of the graph that has a call."""
    operations, traces = paths.operations, paths.traces
    if operations.empty:
        return pd.DataFrame()
    once = [*SCENE, *ROUND]
    whole = traces.loc[traces["reason"] == "", once]
    every = operations[[*SCENE, *NODE]].drop_duplicates().merge(whole, on=SCENE)
    every = every.merge(operations, "left", [*once, *NODE]).fillna(dict.fromkeys(OF_NODES, 0.0))
    by_launch = every.groupby([*SCENE, *NODE, *LAUNCH])[[*OF_NODES, "graph_slack_ms"]].mean()
    found = by_launch.groupby([*SCENE, *NODE]).mean()
    found["launches"] = by_launch.groupby([*SCENE, *NODE]).size()
    found = found.join(every.groupby([*SCENE, *NODE])["thread"].first())
    return found.reset_index().sort_values(
        [*SCENE, "path_ms"], ascending=[*[True] * len(SCENE), False], ignore_index=True
    )


def lead_alone(table: pd.DataFrame) -> "pd.Series[bool]":
    """The rows of leads alone, unmanaged."""
    return (table["kind"] == "alone") & (table["partition"] == UNMANAGED)
