"""Where steps get longer along their critical path, by what the threads that carry it do."""

from collections.abc import Iterator, Mapping
from typing import Any

from castmates.analysis.dataflow.path_states import AFTER, BATCH, BEFORE, IDLE, OPERATIONS, OTHER, UNKNOWN
from castmates.analysis.dataflow.wake_path import OTHERS, OWN
from castmates.report.results import Results, records
from castmates.report.text.trace_states import state_words
from castmates.report.traces import Trace, traces
from castmates.results.traces import without_path

PARTS = {
    BEFORE: "before the path",
    BATCH: "wait for the batch",
    OPERATIONS: "operations",
    OTHER: "operations outside the graph",
    IDLE: "between operations",
    AFTER: "after the path",
    OWN: "the thread of the steps",
    OTHERS: "threads that it waited for",
}
LEAST_MS = 0.005  # of a step, that a row needs on either side


def context(results: Results) -> dict[str, Any]:
    """What the page shows; nothing where no trace has paths, or a reason for their lack."""
    rows = [row for trace in traces(results) for row in _rows(trace)]
    without = [f"{trace.name}: {words}" for trace in traces(results) for words in without_path(trace.about)]
    return {"rows": rows, "without": without} if rows or without else {}


def _rows(trace: Trace) -> Iterator[Mapping[str, Any]]:
    for row in records(trace.named("path")):
        if row["beside_ms"] >= LEAST_MS or row["alone_ms"] >= LEAST_MS:
            yield {**row, "part": PARTS[row["part"]], "what": _what(row["state"], row["reason"])}


def _what(state: str, reason: str) -> str:
    if state in ("preempted", "runnable") and reason:
        return f"{state_words(state, reason)} ({reason} ran)"
    if state != UNKNOWN:
        return state_words(state, reason)
    return f"not known: {reason.rstrip('.')}" if reason else "not known"
