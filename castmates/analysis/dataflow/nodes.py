"""The graph of each lead with what its nodes took: a row per node, and per edge."""

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.per_trace import PathTraces
from castmates.analysis.dataflow.summary import path_operations
from castmates.analysis.keys import LAUNCH, LEAD, MIX
from castmates.analysis.operations.over_traces import lead_alone
from castmates.study.spec import UNMANAGED

KEY = [*LEAD, "operation", "type"]
# Of a node without a call.
UNTRACED = {"ms": 0.0, "on_schedule_path": 0.0, "graph_slack_ms": np.nan, "lost_ms": np.nan, "on_graph_path": 0.0}


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
