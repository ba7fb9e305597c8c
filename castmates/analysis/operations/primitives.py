"""Executions of primitives -> what each takes of a step, by operation, implementation and shapes.

All times are those under oneDNN's log, which costs time itself: they are compared with each other alone.

How much of a step could use an extension of the instruction set, and does, is known by evidence alone: what an
implementation's name shows. The time of an operation outside of its primitives, and that of an operation without any,
may have run with any instructions: it is unknown. Only primitives show which data types an operation works on, so what
serves certain types alone (VNNI, BF16, AMX) is asked of primitives alone.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.explanations.layers import computes
from castmates.analysis.keys import SCENE, SCENE_ROUND, TRACE
from castmates.analysis.operations.instructions import (
    EXTENSIONS,
    LACKS,
    LETTERS,
    NOTHING_KNOWN,
    UNKNOWN,
    UNUSED,
    USED,
    WIDER,
    Extension,
    Work,
    extension_state,
    use_of,
    work_of,
)
from castmates.analysis.operations.per_trace import MS, Traces, differences, in_every_trace, longest_first, summarise
from castmates.analysis.statistics.intervals import columns_of, estimate, ratio

OWNER = ["operation", "type", "direction"]
PROBLEM = ["primitive", "propagation", "implementation", "isa", "shapes", "data_types"]
ALL = "all operations"
STATES = (USED, WIDER, UNUSED, UNKNOWN)
NEARLY_ALL = 0.99
NOTHING, PARTLY, NOT_USED, WHERE_KNOWN, IN_ITS_PLACE = (
    "nothing eligible",
    "partly used",
    "not used",
    "not used where known",
    "wider ones in its place",
)


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


def isa_use(logged: Traces, primitives: pd.DataFrame, flags: Collection[str] | None = None) -> pd.DataFrame:
    """A row per scene, extension and type of operation, and one for all of them; `flags` are the processor's."""
    pieces = _pieces(logged, primitives)
    parts = [_of_extension(pieces, logged.steps, logged.compared, each, flags) for each in EXTENSIONS]
    return pd.concat(parts, ignore_index=True)


def _pieces(traces: Traces, primitives: pd.DataFrame) -> pd.DataFrame:
    """The steps' milliseconds by operation and primitive, and what of each operation lies outside of primitives."""
    key = [*TRACE, *OWNER]
    operations = traces.operations.groupby(key, as_index=False)[["own_ms", "shared_ms"]].sum()
    inside = primitives[primitives["operation"] != ""].merge(operations, on=key)
    within = inside.groupby(key)["ms"].transform("sum")
    # A primitive that was joined to a call just beside it must not make the operation longer than it was.
    fits = (inside["own_ms"] / within.where(within > 0)).clip(upper=1.0)
    of_step = (inside["shared_ms"] / inside["own_ms"].where(inside["own_ms"] > 0)).fillna(0.0)
    inside = inside.assign(ms=inside["ms"] * fits.fillna(0.0) * of_step)
    taken = inside.groupby(key)["ms"].sum().rename("taken")
    outside = operations.join(taken, on=key).fillna({"taken": 0.0})
    left = (outside["shared_ms"] - outside["taken"]).clip(lower=0.0)
    outside = outside.assign(ms=left, primitive="", isa="", data_types="")
    wanted = [*TRACE, "type", "primitive", "isa", "data_types", "ms"]
    return pd.concat([inside[wanted], outside[wanted]], ignore_index=True)


def _of_extension(
    pieces: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame, extension: Extension, flags: Collection[str] | None
) -> pd.DataFrame:
    what = ["type", "primitive", "isa", "data_types"]
    kinds = pieces[what].drop_duplicates()
    states = [_state(extension, *kind) for kind in kinds.itertuples(index=False, name=None)]
    known = pieces.merge(kinds.assign(state=states), on=what)
    known = known[known["state"] != ""]
    every = pd.concat([known, known.assign(type=ALL)], ignore_index=True)
    sums = every.pivot_table(index=[*TRACE, "type"], columns="state", values="ms", aggfunc="sum", fill_value=0.0)
    sums = sums.reindex(columns=list(STATES), fill_value=0.0).reset_index()
    types = pd.concat([sums[[*SCENE, "type"]], steps[SCENE].assign(type=ALL)]).drop_duplicates()
    sums = sums[[*SCENE_ROUND, "type", *STATES]]
    whole = in_every_trace(sums, steps[[*SCENE_ROUND, "step_ms"]], ["type"], STATES, types)
    table = launch_means(whole, [*SCENE, "type"], ["step_ms", *STATES])
    eligible = whole[list(STATES)].sum(axis=1)
    used = whole.assign(share=(whole[USED] / eligible).where(eligible > 0))
    table = table.join(differences(used, both, ["type"], "share")).reset_index()
    table = table.assign(extension=extension.name, processor=extension_state(extension, flags))
    return _shares(table)


def _state(extension: Extension, type_: str, primitive: str, isa: str, data_types: str) -> str:
    """What a piece shows of an extension; "" where it could not use it."""
    if primitive:
        return use_of(extension, primitive, isa, types_of(data_types))
    return UNKNOWN if computes(type_) and not extension.types else ""


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    whole = table[list(STATES)].sum(axis=1)
    table = table.assign(eligible_ms=whole, eligible_share=whole / table["step_ms"])
    for state in STATES:
        table[f"{state}_share"] = (table[state] / whole).where(whole > 0)
    return table.assign(answer=[_answer(row) for _, row in table.iterrows()])


def _answer(row: pd.Series) -> str:
    """In a word or two; what the processor lacks is another answer than what it has and does not use."""
    used, wider, unused, unknown = (float(row[f"{state}_share"]) for state in STATES)
    if not row["eligible_ms"] > 0:
        return NOTHING
    if row["processor"] == LACKS:
        return LACKS
    if used > 0:
        return USED if used >= NEARLY_ALL else PARTLY
    if unknown >= NEARLY_ALL:
        return UNKNOWN
    if wider > 0:
        return IN_ITS_PLACE
    return WHERE_KNOWN if unknown > 0 and unused > 0 else NOT_USED


# How much work operations do in a call: by the primitives that oneDNN logs for them, else as their graph shows; pure.
#
# What the graph shows is estimated from types and shapes, and `source` names it so. What neither shows is not known.

OPERATION = ["study", "member", "operation", "type"]
WORK = ["flops", "bytes"]
PRIMITIVES, ESTIMATED = "primitives", "estimated"  # sources


def estimated_work(nodes: pd.DataFrame) -> pd.DataFrame:
    """The work of one call, by the nodes of leads' graphs: a row per operation of which anything is known.

    Several nodes may bear one name and type, and calls do not show whose they are: their work is known if it is equal.
    """
    named = nodes[[*OPERATION, *WORK, "inputs"]].astype(dict.fromkeys([*OPERATION, "inputs"], "str"))
    each = named.groupby(OPERATION)
    alike = (each[WORK].nunique(dropna=False) == 1).add_suffix("_alike")
    first = named.drop_duplicates(OPERATION).join(alike, on=OPERATION)
    for name in WORK:
        first[name] = first[name].where(first.pop(f"{name}_alike"))
    first["data_types"] = [_types(inputs) for inputs in first.pop("inputs")]
    return first[first[WORK].notna().any(axis=1)].assign(source=ESTIMATED)


def traced_work(rows: pd.DataFrame) -> pd.DataFrame:
    """The same as traces show it of their calls; in the mean of all traces of a lead."""
    each = rows.groupby(OPERATION)
    return each[WORK].mean().assign(data_types=each["data_types"].first()).reset_index().assign(source=ESTIMATED)


def logged_work(primitives: pd.DataFrame, traces: Traces) -> pd.DataFrame:
    """The same by the primitives that were executed for them in launches under oneDNN's log."""
    rows = with_work(primitives[primitives["operation"] != ""])
    rows = rows[(rows["flops"] > 0) & (rows["bytes"] > 0)]
    rows = rows.assign(flops=rows["flops"] * rows["calls"], bytes=rows["bytes"] * rows["calls"])
    key = [*TRACE, "operation", "type"]
    calls = traces.operations.groupby(key)["calls"].sum().rename("of_operation")
    each = rows.groupby(key)[WORK].sum().join(calls, how="inner")
    each = each[each["of_operation"] > 0]
    found = each[WORK].div(each["of_operation"], axis=0).groupby(OPERATION).mean().reset_index()
    return found.assign(data_types="", source=PRIMITIVES)


def known_work(*found: pd.DataFrame) -> pd.DataFrame:
    """What of an operation is known first: what primitives show goes before what is estimated."""
    parts = [part for part in found if len(part)]
    columns = [*OPERATION, *WORK, "data_types", "source"]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True).drop_duplicates(OPERATION)[columns]


def operation_summary(traces: Traces, work: pd.DataFrame) -> pd.DataFrame:
    """The rows of operations by scene with the work of all their calls in a step, and how fast it is done."""
    found = summarise(traces).join(work.set_index(OPERATION)[[*WORK, "source"]], on=OPERATION)
    found[WORK] = found[WORK].astype(float).mul(found["calls"], axis=0)
    speed = (found["flops"] / found["own_ms"] / 1e6).where((found["flops"] > 0) & (found["own_ms"] > 0))
    return found.assign(gflops=speed, source=found["source"].fillna(""))


def _types(inputs: str) -> str:
    """The type of the first numbers that a node takes, as the data types of a primitive are written."""
    kinds = (each.partition("[")[0].rstrip("*") for each in inputs.split("; "))
    return next((f"src:{LETTERS[kind]}" for kind in kinds if kind in LETTERS), "")


# What operations reach of what the lead's CPUs can do: 10^9 operations in a second, under measured roofs.
#
# Work is nominal and bytes are a lower bound (instructions.py), so the intensity, operations per byte, is an upper
# bound: a point may lie further to the left. What works from caches may lie above the roof of the memory. Where
# primitives show the work of an operation, it is theirs, in their time under oneDNN's log. Of others it is estimated
# from the graph, and the time is that of the operation in launches without the log; `source` names which.

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
    return _under(_reached(each, steps, both, _roofline_types(rows)), roofs).assign(source=PRIMITIVES)


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
    return _under(_reached(each, traces.steps, both, _roofline_types(each)), roofs).assign(source=ESTIMATED)


def _reached(each: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame, types: pd.Series) -> pd.DataFrame:
    """A row per scene and operation, from one per trace and operation: launches are the units."""
    what = [*SCENE, "operation", "type"]
    each = each.assign(difference=np.log(each["flops"] / each["ms"] / 1e6))
    table = launch_means(each, what, ["flops", "bytes", "ms"])
    table = table.assign(**columns_of(estimate(each, what), "gflops", ratio)).join(types).reset_index()
    more = differences(each, both, ["operation", "type"], "difference").set_axis(_RATIO, axis=1)
    table = table.join(more.astype("float64").apply(ratio), on=what)
    return table.join(launch_means(steps, SCENE, ["step_ms"])["step_ms"], on=SCENE)


def _roofline_types(rows: pd.DataFrame) -> pd.Series:
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
