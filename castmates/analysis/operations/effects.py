"""How much longer each group of operations takes beside others than alone, and what of the step's loss is its own.

A launch is the unit, as everywhere: scenes are compared inside a round of traces, rounds are averaged over a launch,
and intervals and p-values are those between launches. Only traces of the same graph with the same threads are compared.

Operations are put together so that each group takes enough of a step for its loss to be known. An operation that takes
much of the step stands alone. Smaller ones that differ by numbers alone, such as the lookups of many tables, are put
together; what is then still small is put together by kind and direction, and what is small even so into one group. What
waits, what lies between operations and what belongs to none stay apart: the groups of a trace add up to its step.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from castmates.analysis.core import adjusted, launch_means, of_each_launch
from castmates.analysis.effects.verdicts import LOSS, effect_verdicts
from castmates.analysis.explanations.layers import RUNTIME, UNATTRIBUTED
from castmates.analysis.keys import EFFECT, LAUNCH, SAME_ROUND
from castmates.analysis.operations.per_trace import OPERATION, WAITING, Traces, lead_alone
from castmates.analysis.statistics.intervals import columns_of, estimate, lost, ratio, ratio_of_means

ALONE, SMALLEST = 0.03, 0.01  # of the step of the lead alone
NAMED = {RUNTIME: "between operations", UNATTRIBUTED: UNATTRIBUTED}
SMALL = "small: "  # before kind and direction
OTHERS = "all others"
INPUT = "input pipeline"
_NUMBERS = r"_?\d+"
ROW = [*EFFECT, "group"]
STEP = "step"  # the row of a whole step


def groups(operations: pd.DataFrame, alone: pd.Series) -> pd.DataFrame:
    """By operation: the `group` that it is in; `alone` marks the rows of the lead alone, which decide.

    The rows are those of one lead.
    """
    known, share = _shares(operations, alone)
    group = _apart(known)
    steps = [
        (known["operation"] + ":" + known["type"], ALONE),
        (known["operation"].str.replace(_NUMBERS, "*", regex=True) + ":" + known["type"], SMALLEST),
        (SMALL + known["layer_kind"] + " " + known["direction"], SMALLEST),
    ]
    for name, enough in steps:
        left = group.isna()
        together = share[left].groupby(name[left]).transform("sum")
        large = together.index[together >= enough]
        group.loc[large] = name.loc[large]
    return known.assign(group=_single(known, group.fillna(OTHERS)))


def grouped(rows: pd.DataFrame, traces: Traces) -> pd.DataFrame:
    """Rows of operations with the `group` of each: that of its lead."""
    operations = dict(iter(traces.operations.groupby("member")))
    parts = [
        own.merge(groups(operations[member], lead_alone(operations[member])), on=OPERATION)
        for member, own in rows.groupby("member")
    ]
    return pd.concat(parts, ignore_index=True) if parts else rows.assign(group="")


def groups_by_type(operations: pd.DataFrame, alone: pd.Series) -> pd.DataFrame:
    """The same by type and direction alone, which different graphs have in common."""
    known, share = _shares(operations, alone)
    name = _apart(known).fillna((known["type"] + " " + known["direction"]).str.strip())
    small = share.groupby(name).transform("sum") < SMALLEST
    return known.assign(group=name.mask(small & _apart(known).isna(), OTHERS))


def _shares(operations: pd.DataFrame, alone: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """Each operation, and its part of the step of the lead alone."""
    known = operations[OPERATION].drop_duplicates(ignore_index=True)
    taken = operations[alone].groupby(OPERATION)["shared_ms"].sum()
    return known, (taken / taken.sum()).reindex(pd.MultiIndex.from_frame(known)).fillna(0.0).set_axis(known.index)


def _apart(known: pd.DataFrame) -> pd.Series:
    """What is no operation of the model; NA for those."""
    waits = known["layer"].where(known["layer"] == WAITING, INPUT)
    return known["layer_kind"].map(NAMED).astype("object").where(known["direction"] != "input", waits)


def _single(known: pd.DataFrame, group: pd.Series) -> pd.Series:
    """A group of one operation has its name."""
    alone = group.map(group.value_counts()) == 1
    own = known["operation"] + ":" + known["type"]
    return group.where(~(alone & group.str.contains(":", regex=False) & ~group.str.startswith(SMALL)), own)


def estimate_operation_effects(
    traces: Traces, margin: float, level: float, known: Mapping[str, pd.DataFrame] | None = None
) -> pd.DataFrame:
    """A row per mix, partition and group of operations, and one for the whole step; Holm over a study's groups.

    `known` has the groups of each lead's operations, where they are not those of this study alone.
    """
    both = traces.compared
    pairs = [_pairs(traces, both[both["member"] == member], member, known) for member in both["member"].unique()]
    every = pd.concat(pairs, ignore_index=True) if pairs else pd.DataFrame(columns=[*ROW, "alone_ms", "ms"])
    if every.empty:
        return every
    table = pd.concat([_logs(every), _differences(every), _shares_of_loss(every)], axis=1).reset_index()
    table["p_holm"] = adjusted(table, table["group"] == STEP)  # whole steps are adjusted apart
    table["verdict"] = effect_verdicts(table, margin, level)
    return _finished(table.rename(columns={"rounds": "traces"}))


def _pairs(traces: Traces, both: pd.DataFrame, member: str, known: Mapping[str, pd.DataFrame] | None) -> pd.DataFrame:
    """Milliseconds of a step by group, beside others and alone, of one lead: a row per launch, round and group."""
    operations = traces.operations[traces.operations["member"] == member]
    own = groups(operations, lead_alone(operations)) if known is None else known[member]
    named = operations.merge(own, on=OPERATION)
    by = [*SAME_ROUND, "scene", "kind", "mix", "partition"]
    sums = pd.DataFrame(named.groupby([*by, "group"], as_index=False)["shared_ms"].sum())
    whole = pd.DataFrame(traces.steps.loc[traces.steps["member"] == member, [*by, "step_ms"]])
    step = whole.rename(columns={"step_ms": "shared_ms"}).assign(group=STEP)
    sums = pd.concat([sums, step], ignore_index=True)
    alone = sums.loc[lead_alone(sums), [*SAME_ROUND, "group", "shared_ms"]].rename(columns={"shared_ms": "alone_ms"})
    wide = both[by].merge(pd.DataFrame({"group": sums["group"].unique()}), how="cross")
    wide = wide.merge(alone, "left", [*SAME_ROUND, "group"])
    wide = wide.merge(sums[[*by, "group", "shared_ms"]].rename(columns={"shared_ms": "ms"}), "left", [*by, "group"])
    return wide.fillna({"alone_ms": 0.0, "ms": 0.0})  # an operation that a trace has no call of took no time


def _logs(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many times as long a group takes; where a trace has no time of it, it has no ratio."""
    there = (pairs["alone_ms"] > 0) & (pairs["ms"] > 0)
    logs = np.log(pairs["ms"].where(there) / pairs["alone_ms"].where(there))
    found = estimate(pairs.assign(difference=logs)[there], ROW)
    found = found.reindex(pairs.groupby(ROW).size().index)
    found[["launches", "rounds"]] = found[["launches", "rounds"]].fillna(0).astype("int64")
    return found


def _differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds alone, beside others, and the difference with its interval: these add up over groups."""
    found = estimate(pairs.assign(difference=pairs["ms"] - pairs["alone_ms"]), ROW)
    means = launch_means(pairs, ROW, ["alone_ms", "ms"]).drop(columns="launches")
    return pd.DataFrame(columns_of(found, "difference_ms", ends="difference")).join(means)


def _shares_of_loss(pairs: pd.DataFrame) -> pd.DataFrame:
    """What of the step's difference is each group's: both are means over the same launches."""
    launch = [*ROW, *LAUNCH]
    found = of_each_launch(pairs.assign(above=pairs["ms"] - pairs["alone_ms"]), ROW, ["above"])
    step = found[found["group"] == STEP].drop(columns="group").rename(columns={"above": "below"})
    both = found.merge(step, on=[name for name in launch if name != "group"])
    named = {"ratio": "share_of_loss", "low": "share_of_loss_low", "high": "share_of_loss_high"}
    return ratio_of_means(both, ROW).rename(columns=named)


def _finished(table: pd.DataFrame) -> pd.DataFrame:
    """Back from logarithms, and what of a step, and of its loss, each group has."""
    key = [name for name in ROW if name != "group"]
    step = table[table["group"] == STEP].set_index(key)[["alone_ms", "verdict"]]
    step.columns = pd.Index(["step_alone_ms", "step_verdict"])
    table = table.join(step, on=key)
    table = table.assign(**columns_of(table, "ratio", ratio), **columns_of(table, "loss_pct", lost, ends="loss"))
    for name in ("share_of_loss", "share_of_loss_low", "share_of_loss_high"):
        table[name] = table[name].where(table["step_verdict"] == LOSS)
    return table.assign(share=table["alone_ms"] / table["step_alone_ms"])
