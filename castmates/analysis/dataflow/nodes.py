"""The graph of each lead with what its nodes took: a row per node, and per edge."""

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.per_trace import PathTraces
from castmates.analysis.dataflow.summary import alone
from castmates.study.spec import UNMANAGED

OF_LAUNCH = ["company", "launch"]
KEY = ["study", "member", "platform"]


def study_nodes(nodes: pd.DataFrame, paths: PathTraces) -> pd.DataFrame:
    """Nodes with their times alone, and what they lose beside the mix in which the step loses most."""
    table = nodes.drop(columns=OF_LAUNCH).astype(
        dict.fromkeys(["operation", "type", "member", "platform", "study"], "str")
    )
    # Of several nodes with one name and type, calls are the first one's.
    first = ~table.duplicated([*KEY, "operation", "type"])
    solo = _means(paths.operations[alone(paths.operations)])
    key = [*KEY, "operation", "type"]
    table = table.join(solo[["ms", "on_path", "slack_ms"]], on=key)
    worst = _worst(paths)
    operations = paths.operations.merge(worst, on=[*KEY, "mix", "partition"])
    lost = (_means(operations)["ms"].sub(solo["ms"], fill_value=0.0)).rename("lost_ms")
    table = table.join(lost, on=key).join(worst.set_index(KEY)["mix"].rename("beside"), on=KEY)
    table["beside"] = table["beside"].fillna("")
    table[["ms", "on_path"]] = table[["ms", "on_path"]].fillna(0.0)
    columns = {"ms": 0.0, "on_path": 0.0, "slack_ms": np.nan, "lost_ms": np.nan}
    for name, nothing in columns.items():
        table.loc[~first, name] = nothing
    return table


def study_edges(edges: pd.DataFrame) -> pd.DataFrame:
    """Edges of each lead's graph."""
    return edges.drop(columns=OF_LAUNCH)


def _means(operations: pd.DataFrame) -> pd.DataFrame:
    """Means over traces of a launch, then over launches; by lead and operation."""
    key = [*KEY, "operation", "type"]
    if operations.empty:
        return pd.DataFrame(
            columns=["ms", "on_path", "slack_ms"], index=pd.MultiIndex.from_tuples([], names=key), dtype=float
        )
    by_launch = operations.groupby([*key, *OF_LAUNCH])[["ms", "on_path", "slack_ms"]].mean()
    return by_launch.groupby(key).mean()


def _worst(paths: PathTraces) -> pd.DataFrame:
    """By lead: the mix, without a partition, beside which its traced steps are longest."""
    traces = paths.traces[(paths.traces["reason"] == "") & (paths.traces["kind"] == "corun")]
    traces = traces[traces["partition"] == UNMANAGED]
    means = traces.groupby([*KEY, "mix", "partition"])["step_ms"].mean().reset_index()
    return means.sort_values("step_ms").drop_duplicates(KEY, keep="last")[[*KEY, "mix", "partition"]]
