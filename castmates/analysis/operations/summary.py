"""Traces -> what each operation takes of a step in each scene, one row per operation, and the same by type."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from castmates.analysis.core import launch_means, of_each_launch
from castmates.analysis.keys import SCENE, SCENE_ROUND
from castmates.analysis.operations.over_traces import in_every_trace, longest_first
from castmates.analysis.operations.per_trace import OPERATION, Traces
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio_of_means


def summarise(traces: Traces) -> pd.DataFrame:
    """A row per scene and operation: calls, times of single calls, and its part of the step with its interval."""
    return _summary(traces, OPERATION)


def by_type(traces: Traces) -> pd.DataFrame:
    """A row per scene, type and direction."""
    return _summary(traces, ["type", "direction"])


def by_layer(traces: Traces) -> pd.DataFrame:
    """A row per scene and scope, at every depth: `encoder` has what `encoder/layer_0` and `encoder/layer_1` have."""
    operations = traces.operations[traces.operations["layer"] != ""]
    deepest = int(operations["layer"].str.count("/").max()) + 1 if len(operations) else 0
    parts = []
    for depth in range(1, deepest + 1):
        scopes = operations["layer"].str.split("/").str[:depth]
        there = scopes.str.len() == depth
        rows = operations[there].assign(layer=scopes[there].str.join("/"))
        parts.append(_summary(replace(traces, operations=rows), ["layer", "direction"]).assign(depth=depth))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _summary(traces: Traces, what: Sequence[str]) -> pd.DataFrame:
    """Traces are averaged over a launch, and launches are the units; what a trace has no call of took no time there."""
    rows = [*SCENE, *what]
    how = {"calls": "sum", "own_ms": "sum", "own_min_ms": "min", "own_max_ms": "max", "shared_ms": "sum"}
    each = traces.operations.groupby([*SCENE_ROUND, *what], as_index=False).agg(how)
    steps = traces.steps[[*SCENE_ROUND, "step_ms"]]
    whole = in_every_trace(each, steps, what, ["calls", "own_ms", "shared_ms"])
    table = whole.groupby(rows).agg({"calls": "mean", "own_ms": "mean", "own_min_ms": "min", "own_max_ms": "max"})
    table["call_ms"] = (table["own_ms"] / table["calls"]).where(table["calls"] > 0)
    found = estimate(whole.assign(difference=whole["shared_ms"]), rows)
    table = table.assign(**columns_of(found, "shared_ms", ends="shared"), launches=found["launches"]).reset_index()
    table = table.join(_shares(whole, rows), on=rows)
    table = table.join(launch_means(traces.steps, SCENE, ["step_ms"])["step_ms"], on=SCENE)
    return longest_first(table.assign(share=table["shared_ms"] / table["step_ms"]), "shared_ms")


def _shares(whole: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    """The interval of each row's share of the step: both are means over the same launches."""
    launches = of_each_launch(whole, rows, ["shared_ms", "step_ms"])
    found = ratio_of_means(launches.rename(columns={"shared_ms": "above", "step_ms": "below"}), rows)
    return found[["low", "high"]].add_prefix("share_")
