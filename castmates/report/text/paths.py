"""What the path of the schedule of a step consists of, and what antagonists change in it, in words."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pandas as pd

from castmates.analysis.dataflow.effects import ENTERS, LEAVES, STEP
from castmates.analysis.operations.per_trace import lead_alone
from castmates.report.results import Results, records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import counted, listed, number, plain
from castmates.report.traces import traces
from castmates.study.spec import UNMANAGED

PART_WORDS = {
    STEP: "the whole step",
    "before": "before the first operation",
    "batch": "waiting for the batch",
    "slower": "operations on the path, slower",
    "path": "another path",
    "other": "operations outside the graph",
    "idle": "between operations",
    "after": "after the last operation",
}
LISTED = 12  # operations of a pair in the table
NAMED = 3  # operations that a sentence names


def context(results: Results) -> dict[str, Any]:
    """What the part of the page on graphs is made of; nothing where no program left one."""
    if results.dataflow_nodes.empty:
        return {}
    changes = results.path_changes
    shown = changes[changes["partition"] == UNMANAGED].groupby(["member", "mix"], sort=False).head(LISTED)
    members = sorted(set(results.dataflow_nodes["member"].astype(str)))
    return {
        "sentences": list(path_words(results)),
        "graphs": [{"name": plain(member), "file": quote(f"../graphs/{member}.svg")} for member in members],
        "traces": [
            {"name": trace.name, "links": links}
            for trace in traces(results)
            if trace.lead in members and (links := trace.links())
        ],
        "changes": [
            {
                **row,
                "who": f"{plain(row['member'])} beside {plain(row['mix'].partition('+')[2])}",
                "what": operation_words(f"{row['operation']}:{row['type']}"),
            }
            for row in records(shown)
        ],
        "more": len(changes[changes["partition"] == UNMANAGED]) - len(shown),
    }


def path_words(results: Results) -> Iterator[str]:
    """What bounds a step alone, which operations enter or leave the path, and what has no path."""
    scenes = results.critical_path
    for row in records(scenes[lead_alone(scenes) & (scenes["reason"] == "")]):
        yield (
            f"The path of the schedule of {plain(row['member'])} alone has {number(row['nodes'], 0)} operations, "
            f"{number(row['compute_ms'], 2)} of {number(row['step_ms'], 2)} ms; for "
            f"{number(100 * row['idle_ms'] / row['step_ms'], 0)} % of the step it lies between operations. The path of "
            f"the graph (computed) takes {number(row['graph_path_ms'], 2)} ms with any number of threads; all "
            f"operations together take {number(row['per_thread_ms'], 2)} ms with "
            f"{counted(int(row['threads']), 'thread')} that never {'waits' if row['threads'] == 1 else 'wait'}."
        )
    yield from _changed(results)
    for row in records(scenes[scenes["reason"] != ""]):
        yield f"{plain(row['member'])}, {row['scene']}, has no path: {row['reason']}."


def _changed(results: Results) -> Iterator[str]:
    table = results.path_changes
    table = table[(table["partition"] == UNMANAGED) & table["change"].isin([ENTERS, LEAVES])]
    for _, rows in table.groupby(["member", "mix"], sort=False):
        parts = [
            f"{change} it: {_names(own)}" for change in (ENTERS, LEAVES) if len(own := rows[rows["change"] == change])
        ]
        first = rows.iloc[0]
        beside = plain(first["mix"].partition("+")[2])
        yield f"Beside {beside} the schedule of {plain(first['member'])} has another path; {'; '.join(parts)}."


def _names(rows: pd.DataFrame) -> str:
    names = [operation_words(f"{row['operation']}:{row['type']}") for row in records(rows.head(NAMED))]
    more = len(rows) - len(names)
    return listed([*names, f"{more} more"] if more else names)
