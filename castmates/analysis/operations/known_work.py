"""How much work operations do in a call: by the primitives that oneDNN logs for them, else as their graph shows; pure.

What the graph shows is estimated from types and shapes, and `source` names it so. What neither shows is not known.
"""

import pandas as pd

from castmates.analysis.keys import TRACE
from castmates.analysis.operations.per_trace import Traces
from castmates.analysis.operations.primitives import with_work
from castmates.analysis.operations.summary import summarise

OPERATION = ["study", "member", "operation", "type"]
WORK = ["flops", "bytes"]
PRIMITIVES, ESTIMATED = "primitives", "estimated"  # sources
LETTERS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}  # of numbers, as oneDNN has them


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
