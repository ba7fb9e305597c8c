"""What operations reach of what the lead's CPUs can do: 10^9 operations in a second, under measured roofs.

Work is nominal and bytes are a lower bound (instructions.py), so the intensity, operations per byte, is an upper bound:
a point may lie further to the left. What works from caches may lie above the roof of the memory. Where primitives show
the work of an operation, it is theirs, in their time under oneDNN's log. Of others it is estimated from the graph, and
the time is that of the operation in launches without the log; `source` names which.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.keys import SCENE, TRACE
from castmates.analysis.operations.over_traces import differences, longest_first
from castmates.analysis.operations.per_trace import Traces
from castmates.analysis.operations.primitives import ESTIMATED, OPERATION, PRIMITIVES, types_of, with_work
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio

# A vector holds twice as many numbers of 32 bits as of 64, and works on them in the same time; of other types no roof
# is measured.
AS_DOUBLES = {"f64": 1.0, "f32": 2.0}
_RATIO = ["ratio", "ratio_low", "ratio_high"]
MEMORY, EITHER = "memory", "compute or memory"


@dataclass(frozen=True)
class Roofs:
    """What the lead's CPUs were measured to do at most, in any launch; NaN where it was not."""

    memory_gbs: float = math.nan
    compute_gflops_f64: float = math.nan

    @classmethod
    def of(cls, measured: Sequence[dict[str, object]]) -> "Roofs":
        """Those of several launches."""
        return cls(*(_most(measured, name) for name in ("memory_gbs", "compute_gflops_f64")))

    def compute(self, data_type: str) -> float:
        """The roof of arithmetic for numbers of a type."""
        return self.compute_gflops_f64 * AS_DOUBLES.get(data_type, math.nan)


def _most(measured: Sequence[dict[str, object]], name: str) -> float:
    return max((float(value) for one in measured if isinstance(value := one.get(name), int | float)), default=math.nan)


def rooflines(
    work: pd.DataFrame,
    traces: Traces | None = None,
    logged: Traces | None = None,
    primitives: pd.DataFrame | None = None,
    roofs: Mapping[str, Roofs] = MappingProxyType({}),
) -> pd.DataFrame:
    """Of operations in launches under oneDNN's log, and in usual ones; times of both are never in one row."""
    parts = []
    if logged is not None and primitives is not None:
        parts.append(roofline(primitives, logged.steps, logged.compared, roofs))
    if traces is not None:
        parts.append(estimated_roofline(traces, work, traces.compared, roofs))
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def roofline(
    primitives: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame, roofs: Mapping[str, Roofs]
) -> pd.DataFrame:
    """A row per scene and operation, of its primitives whose work is known; `roofs` has those of each lead's CPUs."""
    rows = with_work(primitives[primitives["operation"] != ""])
    rows = rows[(rows["flops"] > 0) & (rows["bytes"] > 0) & (rows["ms"] > 0)]
    if rows.empty:
        return pd.DataFrame()
    rows = rows.assign(flops=rows["flops"] * rows["calls"], bytes=rows["bytes"] * rows["calls"])
    each = rows.groupby([*TRACE, "operation", "type"], as_index=False)[["flops", "bytes", "ms"]].sum()
    return _under(_reached(each, steps, both, _types(rows)), roofs).assign(source=PRIMITIVES)


def estimated_roofline(
    traces: Traces, work: pd.DataFrame, both: pd.DataFrame, roofs: Mapping[str, Roofs]
) -> pd.DataFrame:
    """The same of operations whose work is estimated; `work` has that of one call (primitives.py)."""
    work = work[(work["source"] == ESTIMATED) & (work["flops"] > 0) & (work["bytes"] > 0)]
    each = traces.operations.groupby([*TRACE, "operation", "type"], as_index=False)[["calls", "own_ms"]].sum()
    each = each[each["own_ms"] > 0].merge(work, on=OPERATION).rename(columns={"own_ms": "ms"})
    if each.empty:
        return pd.DataFrame()
    each[["flops", "bytes"]] = each[["flops", "bytes"]].astype(float).mul(each["calls"], axis=0)
    return _under(_reached(each, traces.steps, both, _types(each)), roofs).assign(source=ESTIMATED)


def _reached(each: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame, types: pd.Series) -> pd.DataFrame:
    """A row per scene and operation, from one per trace and operation: launches are the units."""
    what = [*SCENE, "operation", "type"]
    each = each.assign(difference=np.log(each["flops"] / each["ms"] / 1e6))
    table = launch_means(each, what, ["flops", "bytes", "ms"])
    table = table.assign(**columns_of(estimate(each, what), "gflops", ratio)).join(types).reset_index()
    more = differences(each, both, ["operation", "type"], "difference").set_axis(_RATIO, axis=1)
    table = table.join(more.astype("float64").apply(ratio), on=what)
    return table.join(launch_means(steps, SCENE, ["step_ms"])["step_ms"], on=SCENE)


def _types(rows: pd.DataFrame) -> pd.Series:
    """The data types of what takes most of an operation's work."""
    what = [*SCENE, "operation", "type"]
    return rows.sort_values("flops", ascending=False).drop_duplicates(what).set_index(what)["data_types"]


def _under(table: pd.DataFrame, roofs: Mapping[str, Roofs]) -> pd.DataFrame:
    kinds = [types_of(each).get("src", "") for each in table["data_types"]]
    own = [roofs.get(member, Roofs()) for member in table["member"]]
    compute = pd.Series([each.compute(kind) for each, kind in zip(own, kinds, strict=True)], index=table.index)
    memory_gbs = pd.Series([each.memory_gbs for each in own], index=table.index)
    intensity = table["flops"] / table["bytes"]
    memory = intensity * memory_gbs
    attainable = np.minimum(memory, compute)  # NaN where either is not known
    roof = np.where(memory < compute, MEMORY, EITHER)
    table = table.assign(
        share=table["ms"] / table["step_ms"],
        intensity=intensity,
        memory_gbs=memory_gbs,
        compute_gflops=compute,
        attainable_gflops=attainable,
        roof=np.where(np.isnan(attainable), "", roof),
        roof_share=table["gflops"] / attainable,
    )
    return longest_first(table, "ms")
