"""Calls of operations -> what each operation takes of a step in each trace: all else is made of that.

Traces of the same graph with the same threads can be compared: those beside others with the lead alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from castmates.analysis.explanations.layers import NO_THREAD, RUNTIME, UNATTRIBUTED
from castmates.analysis.keys import SAME_ROUND, TRACE
from castmates.analysis.operations.over_traces import lead_alone

OTHER_THREADS, OTHER_GRAPH = "other threads", "another graph"  # why two traces are not compared
UNMATCHED = 0.05  # of a step in operations that only one of two traces has: above it, they show different graphs
_ABOUT = ["threads_intra", "threads_inter", "times", "step_ms"]
OPERATION = ["operation", "type", "layer", "layer_kind", "direction"]
OUTSIDE = -1
WAITING = "waiting for the batch"  # the layer of what waits for the input
_NUMBER = r"/-?\d+$"  # that TensorFlow gives each thread of a pool
MS = 1e6  # nanoseconds


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


@dataclass(frozen=True)
class Traces:
    """The traces of a study."""

    operations: pd.DataFrame  # a row per trace and operation
    steps: pd.DataFrame  # a row per trace
    pools: pd.DataFrame  # a row per trace and pool of threads

    def changed(self, how: Callable[[pd.DataFrame], pd.DataFrame]) -> "Traces":
        """The same with each table changed in one way."""
        return Traces(how(self.operations), how(self.steps), how(self.pools))

    @property
    def compared(self) -> pd.DataFrame:
        """The traces beside others that can be compared with the lead alone."""
        return self.both[self.both["reason"] == ""]

    @cached_property
    def both(self) -> pd.DataFrame:
        """The traces beside others, and of each why it cannot be compared with the lead alone; "" where it can."""
        return beside_and_alone(self.operations, self.steps, TRACE)

    @classmethod
    def together(cls, parts: "Sequence[Traces]") -> "Traces":
        """Those of several launches together."""
        return cls(
            pd.concat([part.operations for part in parts], ignore_index=True),
            pd.concat([part.steps for part in parts], ignore_index=True),
            pd.concat([part.pools for part in parts], ignore_index=True),
        )


def per_launch(launches: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> Traces | None:
    """Reduce the calls and steps of launches, one at a time; None where none has a step."""
    parts = [per_trace(calls, steps) for calls, steps in launches if len(steps)]
    return Traces.together(parts) if parts else None


def per_trace(calls: pd.DataFrame, steps: pd.DataFrame) -> Traces:
    """Reduce the rows of one launch; what no operation accounts for is a row too, so that each trace adds up."""
    traced = steps[steps["part"] == "traced"]
    whole = _steps(traced)
    operations = _operations(calls).join(whole.set_index(TRACE)["steps"], on=TRACE)
    for column in ("calls", "own_ms", "shared_ms"):
        operations[column] /= operations["steps"]
    rows = pd.concat([operations.drop(columns="steps"), _left(traced)], ignore_index=True)
    return Traces(rows, whole, _pools(calls, whole))


def _operations(calls: pd.DataFrame) -> pd.DataFrame:
    """Sums over the steps of a trace; how long single calls took is asked of those that began in a step."""
    inside = calls["step"].to_numpy() != OUTSIDE
    own = calls["own_ns"].to_numpy(dtype=float) / MS
    sums = calls[[*TRACE, *OPERATION]].assign(
        calls=inside.astype(float),
        own_ms=np.where(inside, own, 0.0),
        own_min_ms=np.where(inside, own, np.nan),
        own_max_ms=np.where(inside, own, np.nan),
        shared_ms=calls["shared_ns"].to_numpy(dtype=float) / MS,
    )
    how = {"calls": "sum", "own_ms": "sum", "own_min_ms": "min", "own_max_ms": "max", "shared_ms": "sum"}
    rows = sums.groupby([*TRACE, *OPERATION], observed=True, as_index=False).agg(how)
    names = [name for name in (*TRACE, *OPERATION) if isinstance(rows[name].dtype, pd.CategoricalDtype)]
    return rows.astype(dict.fromkeys(names, "str"))


def _pools(calls: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """Of each trace and pool: how many of its threads work, and for how long they do in a step, all together."""
    inside = calls["step"] != OUTSIDE
    on_thread = ~calls["thread"].astype("str").str.startswith(NO_THREAD)
    works = calls[inside & on_thread & (calls["layer_kind"] != RUNTIME) & (calls["layer"] != WAITING)]
    names = works["thread"].astype("str")
    rows = works[TRACE].assign(thread=names, pool=names.str.replace(_NUMBER, "", regex=True), ns=works["own_ns"])
    pools = rows.groupby([*TRACE, "pool"], observed=True).agg(threads=("thread", "nunique"), busy_ms=("ns", "sum"))
    pools = pools.reset_index().astype({name: "str" for name in TRACE if name not in ("launch", "round")})
    pools = pools.join(whole.set_index(TRACE)[["steps", "step_ms"]], on=TRACE)
    return pools.assign(busy_ms=pools["busy_ms"] / MS / pools["steps"]).drop(columns="steps")


def _left(traced: pd.DataFrame) -> pd.DataFrame:
    """What belongs to no operation: of a trace, the mean of its steps."""
    left = traced.groupby(TRACE, as_index=False).agg(shared_ms=("unattributed_ns", "mean"))
    named = {"operation": "", "type": UNATTRIBUTED, "layer": "", "layer_kind": UNATTRIBUTED, "direction": ""}
    nothing = {"calls": 0.0, "own_ms": 0.0, "own_min_ms": np.nan, "own_max_ms": np.nan}
    return left.assign(shared_ms=left["shared_ms"] / MS, **named, **nothing)


def _steps(traced: pd.DataFrame) -> pd.DataFrame:
    """Of each trace: how many steps, how long, and with which threads."""
    rows = traced.groupby(TRACE, as_index=False).agg(
        steps=("step", "size"),
        step_ms=("duration_ns", "mean"),
        threads_intra=("threads_intra", "first"),
        threads_inter=("threads_inter", "first"),
    )
    return rows.assign(step_ms=rows["step_ms"] / MS)
