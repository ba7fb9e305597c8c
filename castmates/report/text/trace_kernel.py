"""How the threads of each member got on while a trace was recorded: waits for a CPU, switches, faults, calls."""

from collections.abc import Mapping
from typing import Any

from castmates.report.results import Results, records
from castmates.report.text.words import plain
from castmates.results.traces import traces_there


def context(results: Results) -> Mapping[str, Any]:
    """What the page shows: a row per trace, scene and member; nothing where no table of traces has any."""
    there = set(traces_there(results.folder))
    rows = [
        {
            **row,
            "who": plain(row["member"]),
            "beside": "alone" if row["kind"] == "alone" else row["scene"] or "the whole trace",
        }
        for row in records(results.trace_summary)
        if row["trace"] in there
    ]
    return {"rows": rows} if rows else {}
