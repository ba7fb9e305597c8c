"""How much longer each group of operations takes beside others than alone, and what of the step's loss is its own.

A launch is the unit, as everywhere: scenes are compared inside a round of traces, rounds are averaged over a launch,
and intervals and p-values are those between launches. Only traces of the same graph with the same threads are compared.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.operations.groups import groups
from castmates.analysis.operations.per_trace import OPERATION, TRACE, Traces
from castmates.analysis.statistics.intervals import estimate, holm
from castmates.study.spec import UNMANAGED

SAME = ["study", "company", "launch", "member", "platform", "repetition"]
ROW = ["study", "mix", "partition", "member", "platform", "group"]
UNMATCHED = 0.05  # of a step in operations that only one of two traces has: above it, they show different graphs
STEP = "step"  # the row of a whole step


def estimate_operation_effects(traces: Traces, margin: float, level: float) -> pd.DataFrame:
    """A row per mix, partition and group of operations, and one for the whole step; Holm over a study's groups."""
    pairs = [_pairs(traces, member) for member in traces.steps["member"].unique()]
    every = pd.concat(pairs, ignore_index=True) if pairs else pd.DataFrame(columns=[*ROW, "solo_ms", "ms"])
    if every.empty:
        return every
    table = pd.concat([_logs(every), _differences(every)], axis=1).reset_index()
    step = table["group"] == STEP
    table["p_holm"] = np.nan
    for own in (step, ~step):  # whole steps are a family of their own
        table.loc[own, "p_holm"] = holm(table.loc[own, "p_value"])
    table["verdict"] = effect_verdicts(table, margin, level)
    return _finished(table.rename(columns={"rounds": "traces"})).rename(columns={"blocks": "launches"})


def refused(traces: Traces) -> list[str]:
    """Which traces cannot be compared with the lead alone, in sentences."""
    both = _scenes(traces)
    other = both[~_comparable(both)]
    return [
        f"{member} runs another graph, or with other threads, in {scene} than alone: these traces are not compared."
        for member, scene in other[["member", "scene"]].drop_duplicates().itertuples(index=False)
    ]


def _pairs(traces: Traces, member: str) -> pd.DataFrame:
    """Milliseconds of a step by group, beside others and alone, of one lead: a row per launch, repetition and group."""
    operations = traces.operations[traces.operations["member"] == member]
    alone = (operations["kind"] == "solo") & (operations["partition"] == UNMANAGED)
    named = operations.merge(groups(operations, alone), on=OPERATION)
    by = [*SAME, "scene", "kind", "mix", "partition"]
    sums = named.groupby([*by, "group"], as_index=False)["shared_ms"].sum()
    whole = traces.steps.loc[traces.steps["member"] == member, [*by, "step_ms"]]
    whole = whole.rename(columns={"step_ms": "shared_ms"}).assign(group=STEP)
    sums = pd.concat([pd.DataFrame(sums), whole], ignore_index=True)
    both = _scenes(traces)
    both = both[both["member"] == member]
    compared = both[_comparable(both)]
    solo = sums[(sums["kind"] == "solo") & (sums["partition"] == UNMANAGED)]
    wide = compared[by].merge(pd.DataFrame({"group": sums["group"].unique()}), how="cross")
    solo = solo[[*SAME, "group", "shared_ms"]].rename(columns={"shared_ms": "solo_ms"})
    wide = wide.merge(solo, "left", [*SAME, "group"])
    wide = wide.merge(sums[[*by, "group", "shared_ms"]].rename(columns={"shared_ms": "ms"}), "left", [*by, "group"])
    return wide.fillna({"solo_ms": 0.0, "ms": 0.0})  # an operation that a trace has no call of took no time


def _scenes(traces: Traces) -> pd.DataFrame:
    """The traces of co-runs, each with the one of its launch and repetition in which the lead is alone."""
    steps = traces.steps.join(_times(traces), on=TRACE)
    about = ["graph", "threads_intra", "threads_inter", "times", "step_ms"]
    solo = steps[(steps["kind"] == "solo") & (steps["partition"] == UNMANAGED)]
    return steps[steps["kind"] == "corun"].merge(solo[[*SAME, *about]], on=SAME, suffixes=("", "_alone"))


def _times(traces: Traces) -> pd.Series:
    """By trace: milliseconds of a step, by operation."""
    named = traces.operations[traces.operations["operation"] != ""]
    return pd.Series(
        {
            key: dict(zip(rows["operation"] + ":" + rows["type"], rows["shared_ms"], strict=True))
            for key, rows in named.groupby(TRACE)
        },
        name="times",
    ).rename_axis(TRACE)


def _comparable(both: pd.DataFrame) -> pd.Series:
    """Whether threads, and the graph as far as the job reports it, are the same, and nearly all operations in both."""
    same = [both[name] == both[f"{name}_alone"] for name in ("graph", "threads_intra", "threads_inter")]
    pairs = zip(both["times"], both["times_alone"], both["step_ms"], both["step_ms_alone"], strict=True)
    alike = [
        max(_only_in(one, other) / step, _only_in(other, one) / step_alone) <= UNMATCHED
        for one, other, step, step_alone in pairs
    ]
    return same[0] & same[1] & same[2] & pd.Series(alike, index=both.index, dtype=bool)


def _only_in(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(ms for name, ms in one.items() if name not in other)


def _logs(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many times as long a group takes; where a trace has no time of it, it has no ratio."""
    there = (pairs["solo_ms"] > 0) & (pairs["ms"] > 0)
    logs = np.log(pairs["ms"].where(there) / pairs["solo_ms"].where(there))
    found = estimate(_launches(pairs.assign(difference=logs)[there]), ROW)
    every = pairs.groupby(ROW).size().index
    found = found.reindex(every)
    found[["blocks", "rounds"]] = found[["blocks", "rounds"]].fillna(0).astype("int64")
    return found


def _differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds alone, beside others, and the difference with its interval: these add up over groups."""
    found = estimate(_launches(pairs.assign(difference=pairs["ms"] - pairs["solo_ms"])), ROW)
    named = {"log": "difference_ms", "log_low": "difference_low", "log_high": "difference_high"}
    per_launch = pairs.groupby([*ROW, "company", "launch"])[["solo_ms", "ms"]].mean()
    return found[list(named)].rename(columns=named).join(per_launch.groupby(ROW).mean())


def _launches(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs.rename(columns={"launch": "block", "repetition": "round"})


def _finished(table: pd.DataFrame) -> pd.DataFrame:
    """Back from logarithms, and what of a step, and of its loss, each group has."""
    key = [name for name in ROW if name != "group"]
    step = table[table["group"] == STEP].set_index(key)[["solo_ms", "difference_ms", "verdict"]]
    step.columns = pd.Index(["step_solo_ms", "step_difference_ms", "step_verdict"])
    table = table.join(step, on=key)
    for name, log in {"": "log", "_low": "log_low", "_high": "log_high"}.items():
        table[f"ratio{name}"] = np.exp(table[log])
        table[f"degradation{name or '_pct'}"] = -100 * np.expm1(-table[log])
    return table.assign(
        share=table["solo_ms"] / table["step_solo_ms"],
        share_of_loss=(table["difference_ms"] / table["step_difference_ms"]).where(table["step_verdict"] == "slower"),
    )
