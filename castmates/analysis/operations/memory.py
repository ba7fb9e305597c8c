"""What allocators do in a step: how much, how often, at most, and for which operations."""

import pandas as pd

from castmates.analysis.keys import ROUND, SCENE
from castmates.analysis.operations.beside import differences

ALL = "all operations"
MB = 1e6


def memory_use(memory: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame) -> pd.DataFrame:
    """A row per scene, allocator and operation, and one for all of them; `memory` has the rows of all launches."""
    traced = steps[steps["part"] == "traced"].groupby([*SCENE, *ROUND]).size().rename("steps")
    inside = memory[memory["step"] >= 0].join(traced, on=[*SCENE, *ROUND])
    if inside.empty:
        return pd.DataFrame()
    given = inside[inside["change"] > 0]
    every = [given, given.assign(operation=ALL)]
    rows = pd.concat(every, ignore_index=True)
    rows = rows.assign(allocations=1 / rows["steps"], allocated_mb=rows["change"] / MB / rows["steps"])
    once = [*SCENE, *ROUND, "allocator", "operation"]
    traces = rows.groupby(once, as_index=False)[["allocations", "allocated_mb"]].sum()
    number = traced.reset_index().groupby(SCENE).size().rename("traces")
    sums = traces.groupby([*SCENE, "allocator", "operation"])[["allocations", "allocated_mb"]].sum().reset_index()
    sums = sums.join(number, on=SCENE)
    for name in ("allocations", "allocated_mb"):
        sums[name] /= sums["traces"]
    peaks = inside.groupby([*SCENE, "allocator"])[["in_use", "peak"]].max() / MB
    peaks.columns = pd.Index(["in_use_mb", "peak_mb"])
    table = sums.join(peaks, on=[*SCENE, "allocator"])
    more = differences(traces, both, ["allocator", "operation"], "allocated_mb", 0.0)
    table = table.join(more, on=[*SCENE, "allocator", "operation"])
    return table.sort_values([*SCENE, "allocated_mb"], ascending=[*[True] * len(SCENE), False], ignore_index=True)
