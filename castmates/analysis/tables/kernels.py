"""Which kernels and copies an operation has a GPU run, and how long they take of a step."""

from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

MS, MB = 1e6, 1e6  # nanoseconds; bytes
WHAT = ["device", "activity", "kernel", "operation", "type", "stream"]


KERNELS = Table(
    "kernels",
    "tables/kernels.csv: a row per scene and kernel, or copy, that an operation has a GPU run.",
    *scenes.SCENE,
    col("device", str, "GPU:0"),
    col("stream", str, "of the device"),
    col("activity", str, "kernel, copy, set, memory, other"),
    col("kernel", str, "its name; MemcpyH2D of a copy"),
    col("operation", str, 'that it is of, with its scopes; "" where that is not known'),
    col("type", str, "of the operation"),
    *usual("calls"),
    col("ms", float, "in a step"),
    col("shortest_ms", float, "the shortest call"),
    col("longest_ms", float, "the longest one"),
    col("mb", float, "that copies move in a step"),
    col("tensor_cores", bool, "its name is one of kernels that use them"),
    *usual("launches"),
    col("share", float, "of the time of all that ran on the device"),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@KERNELS.estimated_by
def kernels(device_calls: "pd.DataFrame", steps: "pd.DataFrame") -> "pd.DataFrame":
    """A row per scene and kernel of an operation, the longest first; traces are averaged over launches."""
    import pandas as pd

    from castmates.analysis.core import launch_means
    from castmates.analysis.keys import SCENE, SCENE_ROUND
    from castmates.analysis.operations.per_trace import OUTSIDE, in_every_trace, longest_first, traced_steps

    inside = device_calls[device_calls["step"] != OUTSIDE]
    if inside.empty:
        return pd.DataFrame()
    traced = traced_steps(steps)
    ms, mb = inside["duration_ns"] / MS, inside["bytes"] / MB
    rows = inside.assign(ms=ms, shortest_ms=ms, longest_ms=ms, mb=mb, calls=1.0)
    how = {"calls": "sum", "ms": "sum", "mb": "sum", "shortest_ms": "min", "longest_ms": "max", "tensor_cores": "max"}
    sums = rows.groupby([*SCENE_ROUND, *WHAT], as_index=False).agg(how).join(traced, on=SCENE_ROUND)
    for name in ("calls", "ms", "mb"):
        sums[name] /= sums["steps"]
    # What a trace has no call of took no time there.
    traces = traced.reset_index()[SCENE_ROUND]
    every = in_every_trace(sums.drop(columns="steps"), traces, WHAT, ["calls", "ms", "mb"])
    every = every.fillna({"tensor_cores": False})
    table = launch_means(every, [*SCENE, *WHAT], ["calls", "ms", "mb"])
    single = every.groupby([*SCENE, *WHAT]).agg({"shortest_ms": "min", "longest_ms": "max", "tensor_cores": "max"})
    table = table.join(single).reset_index()
    whole = table.groupby([*SCENE, "device"])["ms"].transform("sum")
    table = table.assign(share=(table["ms"] / whole).where(whole > 0), tensor_cores=table["tensor_cores"].astype(bool))
    return longest_first(table, "ms")
