"""How long phases and steps of members take while a trace is recorded, and what was read of the member meanwhile."""

from collections.abc import Iterator, Mapping
from typing import Any

from castmates.report.results import Results, records
from castmates.report.text.machine import size
from castmates.report.text.words import number, plain
from castmates.report.traces import Trace, traces

BYTES = {"B": "", "B/s": "/s"}  # unit -> what follows a size


def context(results: Results) -> dict[str, Any]:
    """What the page shows; nothing where no trace has steps or phases."""
    rows = [row for trace in traces(results) for row in _rows(trace)]
    return {"rows": rows} if rows else {}


def _rows(trace: Trace) -> Iterator[Mapping[str, Any]]:
    for row in records(trace.named("phases")):
        yield {
            **row,
            "who": plain(row["member"]) or "others",
            "scene": row["scene"] or "the whole trace",
            "what": _text(row["reading"]).replace("_", " "),
            "shown": tuple((row[side], _value(row[side], _text(row["unit"]))) for side in ("alone", "beside")),
        }


def _text(cell: object) -> str:
    return cell if isinstance(cell, str) else ""


def _value(value: float | None, unit: str) -> str:
    """A reading with its unit; "" where none was taken."""
    if value is None or value != value:
        return ""
    if unit in BYTES:
        return size(round(value)) + BYTES[unit]
    return f"{number(value, 0 if abs(value) >= 1000 else 3)} {unit}".rstrip()
