"""How busy the threads of each pool are in a step."""

import pandas as pd

from castmates.analysis.keys import LAUNCH, SCENE
from castmates.analysis.operations.beside import differences
from castmates.analysis.operations.per_trace import Traces


def thread_pools(traces: Traces) -> pd.DataFrame:
    """A row per scene and pool; each thread could work for as long as the step lasts."""
    pools = traces.pools
    share = pools["busy_ms"] / (pools["step_ms"] * pools["threads"])
    each = pools.assign(busy_share=share).groupby([*SCENE, *LAUNCH, "pool"], as_index=False)
    launches = each[["threads", "busy_ms", "busy_share"]].mean()
    means = launches.groupby([*SCENE, "pool"])[["threads", "busy_ms", "busy_share"]].mean()
    means = means.assign(launches=launches.groupby([*SCENE, "pool"]).size())
    more = differences(pools.assign(busy_share=share), traces.compared, ["pool"], "busy_share", 0.0)
    return means.join(more).reset_index()
