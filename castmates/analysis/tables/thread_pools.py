"""How busy the threads of each pool are in a step."""

from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

    from castmates.analysis.operations.per_trace import Traces

THREAD_POOLS = Table(
    "thread_pools",
    "tables/thread_pools.csv: a row per scene and pool of threads.",
    *scenes.SCENE,
    col("pool", str, "as the framework names its threads"),
    col("threads", float, "that worked in a trace; mean over traces"),
    col("busy_ms", float, "in a step, all of its threads together"),
    col("busy_share", float, "of what they could have worked"),
    *usual("launches"),
    *interval(
        "difference",
        "of busy_share: beside others less alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@THREAD_POOLS.estimated_by
def thread_pools(traces: "Traces") -> "pd.DataFrame":
    """A row per scene and pool; each thread could work for as long as the step lasts."""
    from castmates.analysis.core import launch_means
    from castmates.analysis.keys import SCENE
    from castmates.analysis.operations.per_trace import differences

    pools = traces.pools
    pools = pools.assign(busy_share=pools["busy_ms"] / (pools["step_ms"] * pools["threads"]))
    means = launch_means(pools, [*SCENE, "pool"], ["threads", "busy_ms", "busy_share"])
    return means.join(differences(pools, traces.compared, ["pool"], "busy_share", 0.0)).reset_index()
