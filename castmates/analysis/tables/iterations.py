"""The steps of traces: how long, which ones stand out and by what, which one stands for all, what tracing costs."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

    from castmates.analysis.operations.per_trace import Traces

FAR = 3.0  # times the spread around the median that an outlier is away at least; …
SPREAD = 1.4826  # … the median distance to the median, as wide as a standard deviation of normal values
MS = 1e6


ITERATIONS = Table(
    "iterations",
    "tables/iterations.csv: a row per scene: its traced steps.",
    *scenes.SCENE,
    *usual("traces"),
    col("steps", int, "that were traced"),
    col("mean_ms", float, "of a traced step"),
    col("median_ms", float, "of a traced step"),
    col("shortest_ms", float, "of a traced step"),
    col("longest_ms", float, "of a traced step"),
    col("outliers", int, "steps that are three robust standard deviations away from the median"),
    col("key_launch", str, "of the step closest to the median, the one to look at: cohort and number"),
    col("key_round", int, "of its trace"),
    col("key_step", int, "of its trace, from 0"),
    col("usual_ms", float, "of steps that were not traced, right before and after"),
    col("slower", float, "how many times as long a traced step takes"),
    col("slow_steps", int, "of the outliers, those that are longer"),
    col("slow_ms", float, "how much longer these are than usual steps of their launch, mean; NaN without any"),
    col("slow_in", str, "the group of operations (as in operation_effects) that has most of this"),
    col("slow_in_ms", float, "how much of it that is"),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@ITERATIONS.estimated_by
def iterations(steps: "pd.DataFrame", traces: "Traces", in_steps: "pd.DataFrame") -> "pd.DataFrame":
    """A row per scene; `key` names the step that is closest to the median: the one to look at."""
    import pandas as pd

    from castmates.analysis.keys import SCENE
    from castmates.analysis.operations.effects import grouped

    traced, parts = steps[steps["part"] == "traced"], dict(iter(grouped(in_steps, traces).groupby(SCENE)))
    rows = [_scene(key, part, parts[key]) for key, part in traced.groupby(SCENE)]
    table = pd.DataFrame(rows)
    usual = steps[steps["part"] != "traced"].groupby(SCENE)["duration_ns"].mean().rename("usual_ms") / MS
    table = table.join(usual, on=SCENE)
    return table.assign(slower=table["mean_ms"] / table["usual_ms"])


def _scene(key: tuple[Hashable, ...], steps: "pd.DataFrame", parts: "pd.DataFrame") -> dict[str, object]:
    import numpy as np

    from castmates.analysis.keys import LAUNCH, SCENE, TRACE

    ms = steps["duration_ns"].to_numpy(dtype=float) / MS
    middle = float(np.median(ms))
    own = steps.groupby(LAUNCH)["duration_ns"].transform("median") / MS
    away = ms - own  # a launch that is slower as a whole has no outliers for that
    spread = SPREAD * float(away.abs().median())
    outlier = (away.abs() > FAR * spread) & (spread > 0)
    slow = outlier & (away > 0)
    chosen = steps.iloc[int(np.argmin(np.abs(ms - middle)))]
    return dict(zip(SCENE, key, strict=True)) | {
        "traces": len(steps[TRACE].drop_duplicates()),
        "steps": len(steps),
        "mean_ms": float(ms.mean()),
        "median_ms": middle,
        "shortest_ms": float(ms.min()),
        "longest_ms": float(ms.max()),
        "outliers": int(outlier.sum()),
        "slow_steps": int(slow.sum()),
        "key_launch": f"{chosen['cohort']}/{chosen['launch']}",
        "key_round": int(chosen["round"]),
        "key_step": int(chosen["step"]),
        **_slow_in(steps, slow, ~outlier, parts),
    }


def _slow_in(
    steps: "pd.DataFrame", slow: "pd.Series[bool]", usual: "pd.Series[bool]", parts: "pd.DataFrame"
) -> dict[str, object]:
    """How much longer slow steps are than usual ones of their launch, and which group of operations has most of it."""
    from castmates.analysis.keys import LAUNCH, TRACE

    many = steps.assign(slow=slow, usual=usual).groupby(LAUNCH)[["slow", "usual"]].transform("sum")
    both = (many > 0).all(axis=1)
    weight = (slow - usual * many["slow"] / many["usual"])[both] / (slow & both).sum()
    if weight.empty:
        return {"slow_ms": float("nan"), "slow_in": "", "slow_in_ms": float("nan")}
    weighted = steps[both].assign(weight=weight)
    own = parts.merge(weighted[[*TRACE, "step", "weight"]], on=[*TRACE, "step"])
    more = (own["shared_ms"] * own["weight"]).groupby(own["group"]).sum()
    longer = float((weighted["duration_ns"] * weight).sum()) / MS
    return {"slow_ms": longer, "slow_in": str(more.idxmax()), "slow_in_ms": float(more.max())}
