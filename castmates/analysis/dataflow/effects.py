"""Where the time comes from that a step takes longer beside others, along the path of the schedule; parts add up to it.

A trace beside others is compared with the one of its launch and round in which the lead is alone, as operations are. An
operation's time on the path is its share of steps on the path, times what it takes in those steps. So its change is
that of what it takes, at the mean share (`slower`), and that of its share, at the mean time (`path`): both together are
the change exactly. An operation that one side never has on its path has no time there: all of its change is `path`.
Launches are the unit; intervals are those between launches.
"""

import numpy as np
import pandas as pd

from castmates.analysis.core import in_order, launch_means
from castmates.analysis.dataflow.join import FETCH, NODE
from castmates.analysis.dataflow.summary import PathTraces
from castmates.analysis.keys import EFFECT, LAUNCH, MIX, ROUND, SAME_ROUND
from castmates.analysis.operations.over_traces import lead_alone
from castmates.analysis.statistics.intervals import columns_of, estimate

STEP = "step"
SLOWER, PATH = "slower", "path"
# Parts in the order of a step; `slower` and `path` are what nodes compute.
PARTS = {
    "before": "before_ms",
    "batch": "batch_ms",
    SLOWER: "",
    PATH: "",
    "other": "other_ms",
    "idle": "idle_ms",
    "after": "after_ms",
}
ENTERS, LEAVES, STAYS = "enters", "leaves", "stays"
MORE_STEPS = 0.5  # an operation enters or leaves where it is on the path in so much larger a share of the steps


def path_effects(paths: PathTraces) -> pd.DataFrame:
    """A row per mix, partition and part, and one for the whole step; the parts add up to it."""
    both, changed = _pairs(paths)
    if both.empty:
        return pd.DataFrame()
    computed = changed.groupby([*EFFECT, *ROUND], as_index=False)[["slower_ms", "path_ms"]].sum()
    both = both.merge(computed, "left", [*EFFECT, *ROUND]).fillna({"slower_ms": 0.0, "path_ms": 0.0})
    parts = [_part(both, STEP, both["step_ms_alone"], both["step_ms"])]
    for part, column in PARTS.items():
        if column:
            parts.append(_part(both, part, both[f"{column}_alone"], both[column]))
        else:
            parts.append(_part(both, part, None, both[f"{part}_ms"]))
    every = pd.concat(parts, ignore_index=True)
    found = estimate(every, [*EFFECT, "part"])
    table = launch_means(every, [*EFFECT, "part"], ["alone_ms", "ms"]).assign(traces=found["rounds"])
    table = table.assign(**columns_of(found, "difference_ms", ends="difference")).reset_index()
    return in_order(table, [*EFFECT, "part"], part={name: number for number, name in enumerate([STEP, *PARTS])})


def path_changes(paths: PathTraces) -> pd.DataFrame:
    """A row per mix, partition and operation that changes on the path."""
    both, changed = _pairs(paths)
    if both.empty:
        return pd.DataFrame()
    what = ["alone_on_schedule_path", "on_schedule_path", "slower_ms", "path_ms"]
    named = [*EFFECT, "operation", "type", "direction"]
    rounds = both.groupby([*EFFECT, *LAUNCH]).size().rename("rounds")
    launches = changed.groupby([*named, *LAUNCH], as_index=False)[what].sum().join(rounds, on=[*EFFECT, *LAUNCH])
    launches[what] = launches[what].div(launches["rounds"], axis=0)  # a round without the operation counts as nothing
    count = rounds.groupby(EFFECT).size().rename("launches")
    table = launches.groupby(named, as_index=False)[what].sum().join(count, on=EFFECT)
    table[what] = table[what].div(table["launches"], axis=0)
    more = table["on_schedule_path"] - table["alone_on_schedule_path"]
    table["change"] = np.select([more >= MORE_STEPS, more <= -MORE_STEPS], [ENTERS, LEAVES], STAYS)
    size = table[["slower_ms", "path_ms"]].abs().sum(axis=1)
    table = table[size > 0].assign(size=size)
    table = table.sort_values([*EFFECT, "size"], ascending=[*[True] * len(EFFECT), False], ignore_index=True)
    return table.drop(columns="size")


def _pairs(paths: PathTraces) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Traces beside others, each with the one alone; and of each pair the change of every operation on the path."""
    traces = paths.traces
    if traces.empty:
        return traces, traces
    whole = traces[traces["reason"] == ""]
    alone, beside = whole[lead_alone(whole)], whole[whole["kind"] == "corun"]
    both = beside.merge(alone.drop(columns=["scene", "kind", *MIX]), on=SAME_ROUND, suffixes=("", "_alone"))
    both = both[both["threads"] == both["threads_alone"]]
    columns = [*SAME_ROUND, *NODE]
    operations = paths.operations
    one = operations[lead_alone(operations)]
    key = [*EFFECT, *ROUND]
    pairs = both[[*SAME_ROUND, *MIX]]
    before = pairs.merge(one[[*columns, "on_schedule_path", "path_ms"]], on=SAME_ROUND)
    after = operations[operations["kind"] == "corun"][[*columns, *MIX, "on_schedule_path", "path_ms"]]
    after = pairs.merge(after, on=[*SAME_ROUND, *MIX])
    found = before.merge(after, "outer", [*key, *NODE], suffixes=("_alone", ""))
    numbers = [f"{name}{side}" for name in ("on_schedule_path", "path_ms") for side in ("_alone", "")]
    found[numbers] = found[numbers].fillna(0.0)
    return both, _changes(found)


def _part(both: pd.DataFrame, part: str, alone: "pd.Series[float] | None", ms: "pd.Series[float]") -> pd.DataFrame:
    """The difference of each pair; a part that is none of a step has its difference alone."""
    rows = both[[*EFFECT, *ROUND]].assign(part=part)
    if alone is None:
        return rows.assign(alone_ms=np.nan, ms=np.nan, difference=ms)
    return rows.assign(alone_ms=alone, ms=ms, difference=ms - alone)


def _changes(found: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of traces and operation: how its time on the path changes, and why."""
    share, share_alone = found["on_schedule_path"], found["on_schedule_path_alone"]
    time, time_alone = found["path_ms"], found["path_ms_alone"]
    each = time / share.where(share > 0)  # what it takes in steps in which it is on the path
    each_alone = time_alone / share_alone.where(share_alone > 0)
    each, each_alone = each.fillna(each_alone), each_alone.fillna(each)
    computes = found["type"] != FETCH  # the wait for the batch is a part by itself
    slower = ((share + share_alone) / 2 * (each - each_alone)).fillna(0.0).where(computes, 0.0)
    path = (time - time_alone).where(computes, 0.0) - slower
    return found.assign(
        slower_ms=slower,
        path_ms=path,
        alone_on_schedule_path=share_alone,
    )
