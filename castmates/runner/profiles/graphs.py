"""The graph of the lead's step, as the rows that a profile launch leaves of it."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from castmates.analysis.dataflow.work import work_of
from castmates.analysis.explanations.layers import layer_place, optimizer_scopes
from castmates.analysis.operations.instructions import instructions_of
from castmates.errors import CastmatesError
from castmates.files import replace
from castmates.results.columns.dataflow import LAUNCH_GRAPH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.runner.profiles.rounds import Profiled
from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.recorded import Traced
from castmates.traces.graphs import CONTROL, Execution, StepGraph, operand_types, read_graph, words_of
from castmates.traces.operations import FEEDS, WORKS, Ints, Trace, step_of

NONE_LEFT = "the lead leaves no graph of its step (castmates help tracing-graph)"
Row = dict[str, Any]


def write(outcome: Profiled | Traced, folder: Path) -> dict[str, Any]:
    """Write the tables of the graph, or remove those of another launch; what the record has of it."""
    try:
        if outcome.graph is None:
            raise CastmatesError(NONE_LEFT)
        graph = read_graph(outcome.graph)
    except CastmatesError as problem:
        for name in LAUNCH_GRAPH_TABLES:
            (folder / f"{name}.parquet").unlink(missing_ok=True)
        return {"reason": str(problem)}
    common = {
        "study": outcome.launch.study,
        "cohort": outcome.launch.cohort.id,
        "launch": outcome.launch.number,
        "member": outcome.launch.cohort.lead.name,
        "platform": outcome.platform,
    }
    rows = {"graph_nodes": list(_nodes(graph, common)), "graph_edges": list(_edges(graph, common))}
    for name, columns in LAUNCH_GRAPH_TABLES.items():
        writing: Callable[[Path], None] = partial(write_rows, rows[name], columns)
        replace(folder / f"{name}.parquet", writing)
    return {
        "reason": "",
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "other_graphs": graph.other_graphs,  # smaller ones, such as of the input, which are not in the tables
        "other_nodes": graph.other_nodes,
    }


def _nodes(graph: StepGraph, common: Row) -> Iterator[Row]:
    optimizers = optimizer_scopes((node.name, node.does.type) for node in graph.nodes)
    for number, node in enumerate(graph.nodes):
        place, work = layer_place(node.name, node.does.type, optimizers=optimizers), work_of(node.does)
        yield common | {
            "node": number,
            "name": node.name,
            "operation": node.operation,
            "type": node.does.type,
            "layer": place.layer,
            "layer_kind": place.kind,
            "direction": place.direction,
            "device": node.device,
            "inputs": words_of(node.does.inputs),
            "outputs": words_of(node.does.outputs),
            "flops": work.flops,
            "bytes": work.bytes,
            "source": "estimated",
        }


def _edges(graph: StepGraph, common: Row) -> Iterator[Row]:
    for source, target, output in graph.edges:
        kind = "control" if output == CONTROL else "data"
        yield common | {"from": source, "to": target, "kind": kind, "output": output}


# oneDNN's log of a trace as rows of `primitives`, each with the operation that it was executed for.
#
# The log names no thread, so a primitive is joined by time: to the call in which it lies. Where calls of several
# threads do, the one whose type such a primitive is executed for; where that leaves none or several, to none.

NEAR_PS = 2_000_000  # that a primitive may lie outside of its call: the log's clock goes in steps of 0.25 µs
BY_TIME, BY_TYPE, BY_NONE, BY_SEVERAL = "time", "time and type", "", "several"
_MADE_FOR = {  # what is executed for operations of which types; others are executed for any
    "matmul": r"MatMul|Einsum|Conv", "gemm_api": r"MatMul|Einsum|Conv", "inner_product": r"MatMul|Dense",
    "convolution": r"Conv", "deconvolution": r"Conv", "softmax": r"Softmax", "batch_normalization": r"BatchNorm",
    "layer_normalization": r"LayerNorm", "pooling": r"Pool", "rnn": r"RNN|LSTM|GRU", "lrn": r"LRN",
}  # fmt: skip
NOBODY = -1


def primitive_rows(aligned: Aligned, executions: Sequence[Execution]) -> Iterator[dict[str, Any]]:
    """Rows of the executions that begin in traced steps."""
    trace = aligned.trace
    begin = 1000 * (np.array([one.begin_ns for one in executions], np.int64) - trace.origin_ns)
    took = 1000 * np.array([one.duration_ns for one in executions], np.int64)
    step = step_of(begin, trace.step_begin_ps, trace.step_end_ps)
    found = joined(trace, executions, begin, begin + took)
    steady = aligned.steady_ns(begin)
    for place in np.flatnonzero(step >= 0).tolist():
        one, (operation, how) = executions[place], found[place]
        known = None if operation == NOBODY else trace.operations[operation]
        yield aligned.common | {
            "step": int(step[place]),
            "begin_ns": int(steady[place]),
            "duration_ns": one.duration_ns,
            "primitive": one.primitive,
            "propagation": one.propagation,
            "implementation": one.implementation,
            "isa": instructions_of(one.implementation),
            "shapes": one.shapes,
            "data_types": " ".join(f"{role}:{type_}" for role, type_ in operand_types(one.operands)),
            "operands": one.operands,
            "attributes": one.attributes,
            "algorithm": one.algorithm,
            "operation": known.name if known else "",
            "type": known.type if known else "",
            "direction": known.place.direction if known else "",
            "joined_by": how,
        }


def joined(trace: Trace, executions: Sequence[Execution], begin: Ints, end: Ints) -> list[tuple[int, str]]:
    """Of each execution: the place of its operation among those of the trace, and how that is known."""
    around = _around(trace, begin, end)
    return [_chosen(trace, one, candidates) for one, candidates in zip(executions, around, strict=True)]


def _chosen(trace: Trace, execution: Execution, candidates: Sequence[int]) -> tuple[int, str]:
    if len(candidates) <= 1:
        return (candidates[0], BY_TIME) if candidates else (NOBODY, BY_NONE)
    wanted = re.compile(_MADE_FOR.get(execution.primitive, r""))
    fitting = [each for each in candidates if wanted.search(trace.operations[each].type)]
    return (fitting[0], BY_TYPE) if len(fitting) == 1 else (NOBODY, BY_SEVERAL)


def _around(trace: Trace, begin: Ints, end: Ints) -> list[list[int]]:
    """Of each execution: the operations whose calls it lies in, the innermost of each thread."""
    calls, middle = trace.calls, (begin + end) // 2
    level = np.array([one.level for one in trace.operations], np.int64)
    found: list[list[int]] = [[] for _ in range(len(begin))]
    for thread in np.unique(calls.thread).tolist():
        places = np.flatnonzero(calls.thread == thread)  # in the order of time
        at = np.searchsorted(calls.begin_ps[places], middle, "right") - 1
        call = np.where(at >= 0, places[np.maximum(at, 0)], NOBODY)
        while (over := (call != NOBODY) & (calls.end_ps[call] <= middle)).any():
            call[over] = calls.parent[call[over]]
        inside = (call != NOBODY) & (calls.begin_ps[call] <= begin + NEAR_PS) & (calls.end_ps[call] >= end - NEAR_PS)
        inside &= np.isin(level[calls.operation[call]], (WORKS, FEEDS))
        for place in np.flatnonzero(inside).tolist():
            found[place].append(int(calls.operation[call[place]]))
    return found
