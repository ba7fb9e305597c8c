"""Which traces beside others can be compared with the lead alone: those of the same graph with the same threads."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from castmates.analysis.keys import SAME_ROUND
from castmates.analysis.operations.over_traces import lead_alone

OTHER_THREADS, OTHER_GRAPH = "other threads", "another graph"  # why two traces are not compared
UNMATCHED = 0.05  # of a step in operations that only one of two traces has: above it, they show different graphs
_ABOUT = ["threads_intra", "threads_inter", "times", "step_ms"]


def beside_and_alone(operations: pd.DataFrame, steps: pd.DataFrame, trace: list[str]) -> pd.DataFrame:
    """The traces of co-runs, each with the one of its launch and round in which the lead is alone.

    `reason` is why they cannot be compared, "" where they can; `trace` names the columns that a trace is known by.
    """
    steps = steps.join(_times(operations, trace), on=trace)
    alone = steps[lead_alone(steps)]
    both = steps[steps["kind"] == "corun"].merge(alone[[*SAME_ROUND, *_ABOUT]], on=SAME_ROUND, suffixes=("", "_alone"))
    threads = [both[name] == both[f"{name}_alone"] for name in ("threads_intra", "threads_inter")]
    different = np.array([_different(row) for _, row in both.iterrows()], dtype=float)
    both = both.assign(different=different)
    reason = np.select([~(threads[0] & threads[1]), different > UNMATCHED], [OTHER_THREADS, OTHER_GRAPH], "")
    return both.assign(reason=reason)


def _times(operations: pd.DataFrame, trace: list[str]) -> pd.Series:
    """By trace: milliseconds of a step, by operation."""
    named = operations.assign(name=operations["operation"] + ":" + operations["type"])
    every = {key: rows[rows["operation"] != ""] for key, rows in named.groupby(trace)}
    found = {key: dict(zip(rows["name"], rows["shared_ms"], strict=True)) for key, rows in every.items()}
    return pd.Series(found, name="times", dtype="object").rename_axis(trace)


def _different(row: pd.Series) -> float:
    """The share of a step in operations that one of two traces alone has."""
    one, other = row["times"], row["times_alone"]
    return float(max(_only_in(one, other) / row["step_ms"], _only_in(other, one) / row["step_ms_alone"]))


def _only_in(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(ms for name, ms in one.items() if name not in other)
