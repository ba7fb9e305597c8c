"""How long a step takes with other numbers of threads between operations, as far as its graph bounds that."""

from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

    from castmates.analysis.dataflow.summary import PathTraces

NOW = "as now"
CHANGES = {NOW: 1.0, "half": 0.5, "twice": 2.0}
CLOSE = 0.01  # of a step: rounding of times
THREAD_BOUNDS = Table(
    "thread_bounds",
    "tables/thread_bounds.csv: a row per scene with a path and number of threads; computed from traced steps, as if"
    " operations kept their times. Where not even the traced steps lie within their bounds, there is no other number.",
    *scenes.SCENE,
    col("change", str, "of the number of threads: as now, half, twice"),
    col("threads", int, "of operations side by side"),
    col("step_ms", float, "with as many as now, traced"),
    col("at_least_ms", float, "a step: what lies outside of its graph, and the larger of both bounds"),
    col(
        "at_most_ms", float, "where no thread idles while an operation is ready; what is between them is shared by all"
    ),
    col("faster_at_least", float, "a step now, over the longest"),
    col("faster_at_most", float, "a step now, over the shortest"),
    *usual("launches"),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


def between(work: float, path: float, threads: int) -> tuple[float, float]:
    """The shortest and the longest time of a graph (Graham 1969, Brent 1974); no order of ready operations is worse."""
    return max(work / threads, path), (work - path) / threads + path


@THREAD_BOUNDS.estimated_by
def thread_bounds(paths: "PathTraces") -> "pd.DataFrame":
    """Times of operations and of what lies outside of them stay as traced; no more than that where it does not fit."""
    import pandas as pd

    from castmates.analysis.dataflow.summary import critical_path

    table = critical_path(paths)
    rows = []
    for row in table[table["launches"] > 0].to_dict("records") if len(table) else []:
        for change, factor in CHANGES.items():
            threads = round(row["threads"] * factor)
            if threads < 1:
                continue
            least, most = between(row["work_ms"], row["graph_path_ms"], threads)
            outside = row["before_ms"] + row["batch_ms"] + row["after_ms"]
            least += outside
            # Between operations threads do what was too short to be traced: fewer have more of it each.
            most += outside + (row["step_ms"] - row["compute_ms"] - outside) * max(1.0, row["threads"] / threads)
            faster = {"faster_at_least": row["step_ms"] / most, "faster_at_most": row["step_ms"] / least}
            rows.append(row | {"change": change, "threads": threads, "at_least_ms": least, "at_most_ms": most} | faster)
            if change == NOW and not (1 - CLOSE) * least <= row["step_ms"] <= (1 + CLOSE) * most:
                break
    return pd.DataFrame(rows)
