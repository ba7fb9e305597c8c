"""How slow a member's loads were, and where they were served from: alone, and beside others."""

import pandas as pd

from castmates.timeline.flames.profile import ALONE, CORUN, stretches
from castmates.timeline.latencies.data_source import ORDER
from castmates.timeline.latencies.reading import EVENT, REMOTE
from castmates.timeline.model import Timeline

ALL = "all"
QUANTILES = {"cycles_median": 0.5, "cycles_90": 0.9, "cycles_99": 0.99}


def latencies(timeline: Timeline, member: str) -> pd.DataFrame:
    """A row per scene and level: sampled loads, their share, quantiles of latency, and the share from other nodes.

    Quantiles are of the loads that the source samples: Intel's and Arm's take slow ones alone. They are in the cycles
    of that source, so they compare scenes, not processors.
    """
    tracks = timeline.tracks
    own = tracks.loc[(tracks["member"] == member) & (tracks["kind"] == "thread"), "track"]
    sampled = timeline.stacks[(timeline.stacks["event"] == EVENT) & timeline.stacks["track"].isin(own)]
    rows = []
    for scene in (ALONE, CORUN):
        times = sampled["t_ns"]
        inside = pd.Series(False, index=sampled.index)
        for each in stretches(timeline, member, scene):
            inside |= (times >= each.t0_ns) & (times < each.t1_ns)
        rows.extend(_of_scene(sampled[inside], member, scene))
    columns = ["member", "scene", "level", "loads", "share", *QUANTILES, "remote_share"]
    return pd.DataFrame(rows, columns=columns)


def _of_scene(found: pd.DataFrame, member: str, scene: str) -> list[list[object]]:
    if found.empty:
        return []
    parts = found["stack"].astype(str).str.split(";")
    level, remote = parts.str[1], parts.str[2] == REMOTE
    rows = []
    for name in (ALL, *ORDER):
        those = level.notna() if name == ALL else level == name
        if those.any():
            quantiles = [float(found.loc[those, "weight"].quantile(each)) for each in QUANTILES.values()]
            share, far = float(those.mean()), float(remote[those].mean())
            rows.append([member, scene, name, int(those.sum()), share, *quantiles, far])
    return rows
