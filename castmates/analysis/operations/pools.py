"""How busy the threads of each pool are in a step."""

import pandas as pd

from castmates.analysis.operations.per_trace import Traces
from castmates.analysis.operations.summary import LAUNCH, SCENE


def thread_pools(traces: Traces) -> pd.DataFrame:
    """A row per scene and pool; each thread could work for as long as the step lasts."""
    pools = traces.pools
    share = pools["busy_ms"] / (pools["step_ms"] * pools["threads"])
    each = pools.assign(busy_share=share).groupby([*SCENE, *LAUNCH, "pool"], as_index=False)
    launches = each[["threads", "busy_ms", "busy_share"]].mean()
    means = launches.groupby([*SCENE, "pool"])[["threads", "busy_ms", "busy_share"]].mean()
    return means.assign(launches=launches.groupby([*SCENE, "pool"]).size()).reset_index()
