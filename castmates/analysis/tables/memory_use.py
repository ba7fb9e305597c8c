"""What allocators do in a step: how much, how often, at most, and for which operations."""

from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

ALL = "all operations"
MB = 1e6


MEMORY_USE = Table(
    "memory_use",
    "tables/memory_use.csv: a row per scene, allocator and operation, and one for all operations.",
    *scenes.SCENE,
    col("allocator", str, "as the framework names it"),
    col("operation", str, "with its scopes; all operations for their sum"),
    col("allocations", float, "in a step"),
    col("allocated_mb", float, "in a step"),
    col("in_use_mb", float, "of the allocator, at most in a traced step"),
    col("peak_mb", float, "of the allocator, at most since the job's start; PyTorch: since the trace began"),
    *usual("traces"),
    *interval(
        "difference",
        "of allocated_mb: beside others less alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@MEMORY_USE.estimated_by
def memory_use(memory: "pd.DataFrame", steps: "pd.DataFrame", compared: "pd.DataFrame") -> "pd.DataFrame":
    """A row per scene, allocator and operation, and one for all of them; `memory` has the rows of all launches."""
    import pandas as pd

    from castmates.analysis.keys import SCENE, SCENE_ROUND
    from castmates.analysis.operations.per_trace import differences, longest_first, traced_steps

    traced = traced_steps(steps)
    inside = memory[memory["step"] >= 0].join(traced, on=SCENE_ROUND)
    if inside.empty:
        return pd.DataFrame()
    given = inside[inside["change"] > 0]
    every = [given, given.assign(operation=ALL)]
    rows = pd.concat(every, ignore_index=True)
    rows = rows.assign(allocations=1 / rows["steps"], allocated_mb=rows["change"] / MB / rows["steps"])
    numbers, what = ["allocations", "allocated_mb"], ["allocator", "operation"]
    traces = rows.groupby([*SCENE_ROUND, *what], as_index=False)[numbers].sum()
    number = traced.reset_index().groupby(SCENE).size().rename("traces")
    sums = traces.groupby([*SCENE, *what])[numbers].sum().reset_index().join(number, on=SCENE)
    sums[numbers] = sums[numbers].div(sums["traces"], axis=0)
    peaks = inside.groupby([*SCENE, "allocator"])[["in_use", "peak"]].max() / MB
    peaks.columns = pd.Index(["in_use_mb", "peak_mb"])
    table = sums.join(peaks, on=[*SCENE, "allocator"])
    table = table.join(differences(traces, compared, what, "allocated_mb", 0.0), on=[*SCENE, *what])
    return longest_first(table, "allocated_mb")
