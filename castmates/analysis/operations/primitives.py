"""Executions of primitives -> what each takes of a step, by operation, implementation and shapes.

All times are those under oneDNN's log, which costs time itself: they are compared with each other alone.
"""

import pandas as pd

from castmates.analysis.keys import SCENE, SCENE_ROUND, TRACE
from castmates.analysis.operations.over_traces import in_every_trace, longest_first
from castmates.analysis.operations.per_trace import MS, Traces
from castmates.analysis.operations.work import NOTHING_KNOWN, Work, work_of
from castmates.analysis.statistics.intervals import columns_of, estimate

OWNER = ["operation", "type", "direction"]
PROBLEM = ["primitive", "propagation", "implementation", "isa", "shapes", "data_types"]


def reduced(primitives: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Calls and milliseconds in a step: a row per trace, operation and problem; `steps` has a row per trace."""
    keys = [*TRACE, *OWNER, *PROBLEM]
    times = primitives[keys].assign(ms=primitives["duration_ns"].to_numpy(dtype=float) / MS)
    rows = times.groupby(keys, as_index=False).agg(calls=("ms", "size"), ms=("ms", "sum"))
    rows = rows.join(steps.set_index(TRACE)["steps"], on=TRACE)
    return rows.assign(calls=rows["calls"] / rows["steps"], ms=rows["ms"] / rows["steps"]).drop(columns="steps")


def types_of(data_types: str) -> dict[str, str]:
    """The data type of each operand, by its role: `src:f32 wei:f32 dst:f32`."""
    return dict(word.split(":", 1) for word in data_types.split() if ":" in word)


def with_work(rows: pd.DataFrame) -> pd.DataFrame:
    """The same with `flops` and `bytes` of one call."""
    what = ["primitive", "shapes", "data_types"]
    known: dict[tuple[str, ...], Work] = {
        (primitive, shapes, types): work_of(primitive, shapes, types_of(types))
        for primitive, shapes, types in rows[what].drop_duplicates().itertuples(index=False)
    }
    work = [known.get(key, NOTHING_KNOWN) for key in rows[what].itertuples(index=False, name=None)]
    return rows.assign(flops=[one.flops for one in work], bytes=[one.bytes for one in work])


def summarise_primitives(primitives: pd.DataFrame, logged: Traces) -> pd.DataFrame:
    """A row per scene, operation and problem; a trace without a call of it spent no time there."""
    what = [*SCENE, *OWNER, *PROBLEM]
    rows = primitives[[*SCENE_ROUND, *OWNER, *PROBLEM, "calls", "ms"]]
    whole = in_every_trace(rows, logged.steps[[*SCENE_ROUND, "step_ms"]], [*OWNER, *PROBLEM], ["calls", "ms"])
    if whole.empty:
        return whole
    found = estimate(whole.assign(difference=whole["ms"]), what)
    table = pd.DataFrame(columns_of(found, "ms")).assign(launches=found["launches"])
    table = table.join(whole.groupby(what)[["calls", "step_ms"]].mean()).reset_index()
    table = with_work(table)
    call_ms = (table["ms"] / table["calls"]).where(table["calls"] > 0)
    table = table.assign(call_ms=call_ms, share=table["ms"] / table["step_ms"], gflops=table["flops"] / call_ms / 1e6)
    return longest_first(table, "ms")
