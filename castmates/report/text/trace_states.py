"""Where the time of members' threads went while a trace was recorded: alone and beside others, by state."""

from collections.abc import Iterator, Mapping
from typing import Any

from castmates.report.results import Results, records
from castmates.report.text.words import plain
from castmates.report.traces import Trace, traces

WORDS = {
    "running": "runs",
    "runnable": "woken, waits for a CPU",
    "preempted": "lost its CPU, waits for one",
    "blocked": "waits for something else",
    "unknown": "not known",
}
UNWOKEN = "or, once woken, for a CPU: its wake-up was not seen"
REASONS = {  # the kinds of waits that `timeline.syscalls` knows; of others, the name of the call
    "futex": "waits for another thread (futex)",
    "poll": "waits for any of several files or sockets (poll)",
    "sleep": "asleep",
    "io": "waits for input or output",
    "socket": "waits for a socket",
    "child": "waits for a process that it started",
    "signal": "waits for a signal",
    "fault": "waits for a page",
    "unknown": "waits, for what is not known",
    "": "waits, for what is not known",
}


def context(results: Results) -> dict[str, Any]:
    """What the page shows; nothing where no trace has states."""
    rows = [row for trace in traces(results) for row in _rows(trace)]
    return {"rows": rows} if rows else {}


def _rows(trace: Trace) -> Iterator[Mapping[str, Any]]:
    for row in records(trace.named("members")):
        yield {
            **row,
            "who": plain(row["member"]) or "others",
            "scene": row["scene"] or "the whole trace",
            "what": state_words(row["state"], row["reason"]),
            "lead": row["member"] == trace.lead,
        }


def state_words(state: str, reason: str) -> str:
    """A state as people read it."""
    if state == "blocked":
        return REASONS.get(reason, f"waits in {reason}")
    if state == "unknown" and reason:
        return f"{state_words('blocked', reason)}; {UNWOKEN}"
    return WORDS.get(state, state)
