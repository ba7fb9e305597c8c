"""Calls of operations -> what each operation takes of a step in each trace: all else is made of that.

Traces of the same graph with the same threads can be compared: those beside others with the lead alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means, of_each_launch
from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.explanations.layers import NO_THREAD, RUNTIME, UNATTRIBUTED
from castmates.analysis.keys import LAUNCH, LEAD, SAME_ROUND, SCENE, SCENE_ROUND, TRACE
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio_of_means
from castmates.study.profile_launches import CACHED, FIRST
from castmates.study.spec import UNMANAGED

# Numbers of traces -> estimates by scene: a trace is a round of its launch, and launches are the units.
#
# A trace beside others is compared with the one of its launch and round in which the lead is alone, if both are of the
# same graph with the same threads.

_DIFFERENCE = ["difference", "difference_low", "difference_high"]


def lead_alone(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows are of leads alone, without a partition: what those beside others are compared with."""
    return (rows["kind"] == "alone") & (rows["partition"] == UNMANAGED)


def traced_steps(steps: pd.DataFrame) -> "pd.Series[int]":
    """How many steps of each trace were traced."""
    return steps[steps["part"] == "traced"].groupby(SCENE_ROUND).size().rename("steps")


def in_every_trace(
    rows: pd.DataFrame,
    traces: pd.DataFrame,
    what: Sequence[str],
    numbers: Sequence[str],
    things: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A row for each trace of a scene and each thing that any of them has, with zeros where a trace lacks it.

    `numbers` are zero there, and other columns unknown; the `things` are those of `rows`, or named.
    """
    known = rows[[*SCENE, *what]].drop_duplicates() if things is None else things
    whole = known.merge(traces, on=SCENE).merge(rows, "left", [*SCENE_ROUND, *what], suffixes=("", "_of_rows"))
    return whole.fillna(dict.fromkeys(numbers, 0.0))


def longest_first(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows by scene, and in each by what they take."""
    return table.sort_values([*SCENE, column], ascending=[*[True] * len(SCENE), False], ignore_index=True)


def differences(
    values: pd.DataFrame, both: pd.DataFrame, keys: Sequence[str], name: str, absent: float | None = None
) -> pd.DataFrame:
    """By scene and keys: the number beside others less that alone, and its interval.

    `values` has a row per trace and keys, `both` the traces that can be compared (`Traces.compared`). What a trace has
    no row of is `absent`; where that is None, it is left out.
    """
    pairs = both[SCENE_ROUND]
    if absent is not None:
        every = values[[*LEAD, *keys]].drop_duplicates()
        pairs = pairs.merge(every, on=LEAD)
    how: Literal["inner", "left"] = "inner" if absent is None else "left"
    alone = values.loc[lead_alone(values), [*SAME_ROUND, *keys, name]].rename(columns={name: "alone"})
    beside = values[[*SCENE_ROUND, *keys, name]].rename(columns={name: "beside"})
    pairs = pairs.merge(beside, how, list(pairs.columns))
    pairs = pairs.merge(alone, how, [*SAME_ROUND, *keys])
    if absent is not None:
        pairs = pairs.fillna({"alone": absent, "beside": absent})
    pairs = pairs.assign(difference=pairs["beside"] - pairs["alone"]).dropna(subset="difference")
    which = [*SCENE, *keys]
    if pairs.empty:
        return pd.DataFrame(columns=_DIFFERENCE, index=pd.MultiIndex.from_arrays([[]] * len(which), names=which))
    return pd.DataFrame(columns_of(estimate(pairs, which), "difference"))


OTHER_THREADS, OTHER_GRAPH = "other threads", "another graph"  # why two traces are not compared
UNMATCHED = 0.05  # of a step in operations that only one of two traces has: above it, they show different graphs
_ABOUT = ["threads_intra", "threads_inter", "times", "step_ms"]
OPERATION = ["operation", "type", "layer", "layer_kind", "direction"]
NO_OPERATION = {"operation": "", "type": UNATTRIBUTED, "layer": "", "layer_kind": UNATTRIBUTED, "direction": ""}
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


def per_step(calls: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """What each operation takes of each traced step of one launch; what no operation accounts for is a row too."""
    by = [*TRACE, "step", *OPERATION]
    inside = calls[calls["step"] != OUTSIDE]
    rows = inside.groupby(by, observed=True, as_index=False).agg({"shared_ns": "sum"})
    names = [name for name in by if isinstance(rows[name].dtype, pd.CategoricalDtype)]
    traced = steps[steps["part"] == "traced"]
    left = traced[[*TRACE, "step"]].assign(shared_ns=traced["unattributed_ns"], **NO_OPERATION)
    rows = pd.concat([rows.astype(dict.fromkeys(names, "str")), left], ignore_index=True)
    return rows.assign(shared_ms=rows["shared_ns"] / MS).drop(columns="shared_ns")


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
    nothing = {"calls": 0.0, "own_ms": 0.0, "own_min_ms": np.nan, "own_max_ms": np.nan}
    return left.assign(shared_ms=left["shared_ms"] / MS, **NO_OPERATION, **nothing)


def _steps(traced: pd.DataFrame) -> pd.DataFrame:
    """Of each trace: how many steps, how long, and with which threads."""
    rows = traced.groupby(TRACE, as_index=False).agg(
        steps=("step", "size"),
        step_ms=("duration_ns", "mean"),
        threads_intra=("threads_intra", "first"),
        threads_inter=("threads_inter", "first"),
    )
    return rows.assign(step_ms=rows["step_ms"] / MS)


# Traces -> what each operation takes of a step in each scene, one row per operation, and the same by type.


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
    return found[["low", "high"]].clip(0.0, 1.0).add_prefix("share_")


# Whether a lead waits for its input: the part of a step in which it fetches a batch and the model does not work.
#
# The first epoch is held against later ones: how long steps wait for records that come from storage, and for cached
# ones. Both begin with the first record of the input, in the same launch, in pairs: what differs is where records come
# from.

BOUND = 0.10  # of the step: more of it spent waiting is input-bound, less is compute-bound
INPUT, COMPUTE = "input-bound", "compute-bound"
ABOUT = [*LAUNCH, "scene", "round"]  # of a trace, in the records of launches
MB = 1e6
CHANGES = {"step_ms": "longer", "share": "more"}  # what is compared, and how its columns begin


def input_pipeline(traces: Traces) -> pd.DataFrame:
    """A row per scene: the share of the step that is waited for the input, and that the input's own work has."""
    whole = waits(traces)
    found = estimate(whole.rename(columns={"share": "difference"}), SCENE)
    table = pd.DataFrame(columns_of(found, "waiting_share", ends="waiting")).assign(launches=found["launches"])
    means = whole.groupby(SCENE)[["step_ms", "waiting", "working", "work_own"]].mean()
    means = means.rename(columns={"waiting": "waiting_ms", "working": "input_ms", "work_own": "input_own_ms"})
    more = differences(whole, traces.compared, [], "share")
    table = table.join(means).join(more).reset_index()
    table[["waiting_low", "waiting_high"]] = table[["waiting_low", "waiting_high"]].clip(0.0, 1.0)
    low, high = table["waiting_low"].to_numpy(dtype=float), table["waiting_high"].to_numpy(dtype=float)
    verdict = np.select([np.isnan(low), low > BOUND, high < BOUND], [TOO_FEW, INPUT, COMPUTE], UNCLEAR)
    return table.assign(verdict=verdict)


def waits(traces: Traces) -> pd.DataFrame:
    """A row per trace: milliseconds of a step that wait for the input, their share, and the input's own work."""
    operations = traces.operations
    waiting = operations[operations["layer"] == WAITING].groupby(SCENE_ROUND)["shared_ms"].sum().rename("waiting")
    of_input = (operations["direction"] == "input") & (operations["layer"] != WAITING)
    works = operations[of_input].groupby(SCENE_ROUND)[["shared_ms", "own_ms"]].sum()
    works.columns = pd.Index(["working", "work_own"])
    whole = traces.steps[[*SCENE_ROUND, "step_ms"]].join(waiting, on=SCENE_ROUND)
    whole = whole.join(works, on=SCENE_ROUND).fillna(0.0)
    return whole.assign(share=whole["waiting"] / whole["step_ms"])


def first_epoch(epochs: Traces, epochs_about: pd.DataFrame) -> pd.DataFrame:
    """A row per scene and epoch; `epochs_about` has the epoch, the pair and the bytes from storage of each trace."""
    parts = []
    for epoch in (FIRST, CACHED):
        own = _of(epochs, epochs_about[epochs_about["epoch"] == epoch])
        if len(own.steps):
            parts.append(input_pipeline(own).assign(epoch=epoch).merge(_storage(own), "left", SCENE))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    table = table.merge(_changes(epochs, epochs_about).assign(epoch=FIRST), "left", [*SCENE, "epoch"])
    return table.sort_values(SCENE, kind="stable")


def _of(traces: Traces, about: pd.DataFrame) -> Traces:
    """The traces of one epoch, numbered by their pairs, so that those of one pair are compared."""
    numbers = about[[*ABOUT, "pair", "storage_bytes"]]

    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.merge(numbers, on=ABOUT).drop(columns="round").rename(columns={"pair": "round"})

    return traces.changed(chosen)


def _storage(own: Traces) -> pd.DataFrame:
    """By scene: megabytes that storage gave in a step, in the mean of launches."""
    mb = own.steps["storage_bytes"].astype("float64") / own.steps["steps"] / MB
    return launch_means(own.steps.assign(storage_mb=mb), SCENE, ["storage_mb"])[["storage_mb"]].reset_index()


def _changes(traces: Traces, about: pd.DataFrame) -> pd.DataFrame:
    """By scene: how much longer a step is at first, and how much more of it waits, each with its interval."""
    known = waits(traces).merge(about, on=ABOUT)
    which = [*SCENE, *LAUNCH, "pair"]
    first, cached = (known.loc[known["epoch"] == epoch, [*which, *CHANGES]] for epoch in (FIRST, CACHED))
    pairs = first.merge(cached, on=which, suffixes=("", "_cached")).rename(columns={"pair": "round"})
    parts = []
    for column, name in CHANGES.items():
        found = estimate(pairs.assign(difference=pairs[column] - pairs[f"{column}_cached"]), SCENE)
        parts.append(pd.DataFrame(columns_of(found, name)))
    return parts[0].join(parts[1]).reset_index()
