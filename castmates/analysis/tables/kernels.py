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

    from castmates.analysis.keys import LAUNCH, ROUND, SCENE
    from castmates.analysis.operations.per_trace import OUTSIDE

    inside = device_calls[device_calls["step"] != OUTSIDE]
    if inside.empty:
        return pd.DataFrame()
    trace = [*SCENE, *ROUND]
    traced = steps[steps["part"] == "traced"].groupby(trace).size().rename("steps")
    ms, mb = inside["duration_ns"] / MS, inside["bytes"] / MB
    rows = inside.assign(ms=ms, shortest_ms=ms, longest_ms=ms, mb=mb, calls=1.0)
    how = {"calls": "sum", "ms": "sum", "mb": "sum", "shortest_ms": "min", "longest_ms": "max", "tensor_cores": "max"}
    sums = rows.groupby([*trace, *WHAT], as_index=False).agg(how).join(traced, on=trace)
    for name in ("calls", "ms", "mb"):
        sums[name] /= sums["steps"]
    # What a trace has no call of took no time there.
    traces = traced.reset_index()[trace].merge(sums[[*SCENE, *WHAT]].drop_duplicates(), on=SCENE)
    every = traces.merge(sums.drop(columns="steps"), "left", [*trace, *WHAT])
    every = every.fillna({"calls": 0.0, "ms": 0.0, "mb": 0.0, "tensor_cores": False})
    launches = every.groupby([*SCENE, *WHAT, *LAUNCH])[["calls", "ms", "mb"]].mean()
    table = launches.groupby([*SCENE, *WHAT]).mean()
    single = every.groupby([*SCENE, *WHAT]).agg({"shortest_ms": "min", "longest_ms": "max", "tensor_cores": "max"})
    table = table.join(single).assign(launches=launches.groupby([*SCENE, *WHAT]).size()).reset_index()
    whole = table.groupby([*SCENE, "device"])["ms"].transform("sum")
    table = table.assign(share=(table["ms"] / whole).where(whole > 0), tensor_cores=table["tensor_cores"].astype(bool))
    return table.sort_values([*SCENE, "ms"], ascending=[*[True] * len(SCENE), False], ignore_index=True)
