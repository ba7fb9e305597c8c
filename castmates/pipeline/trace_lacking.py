"""What a trace has not of what a query needs: the sentences of its record that are about that."""

import re
from collections.abc import Mapping

from castmates.linux.tracing_rights import FAMILIES, FAULTS, INTERRUPTS, SCHEDULER, SYSCALLS
from castmates.results import traces
from castmates.results.traces import PATHS
from castmates.study.tracing_design import LATENCIES, STACKS
from castmates.timeline.queries.asking import views
from castmates.timeline.queries.database import TraceFolder
from castmates.timeline.tables import read_about

HEARTBEAT, PROFILE, ANNOTATIONS, NUMBERS = "heartbeat", "profile", "annotations", "numbers"
OF_VIEWS: Mapping[str, frozenset[str]] = {  # views whose rows are of some sources alone
    "states": frozenset({SCHEDULER}),
    "wakeups": frozenset({SCHEDULER}),
    "migrations": frozenset({SCHEDULER}),
    "syscalls": frozenset({SYSCALLS}),
    "faults": frozenset({FAULTS}),
    "interrupts": frozenset({INTERRUPTS}),
    "losses": frozenset(FAMILIES),
    "heartbeats": frozenset({HEARTBEAT}),
    "steps": frozenset({HEARTBEAT, PROFILE}),
    "operations": frozenset({PROFILE}),
    "phases": frozenset({ANNOTATIONS}),
    "samples": frozenset({NUMBERS}),
    "stacks": frozenset({STACKS, LATENCIES}),
    "paths": frozenset({PATHS, PROFILE}),
}
OF_ALL = ("intervals", "instants")  # views of whatever there is
EVERYTHING = frozenset().union(*OF_VIEWS.values())
_USED = re.compile(r"(?:\bFROM|\bJOIN|,)[\s(]*(\w+)", re.IGNORECASE)


def lacking(trace: TraceFolder, sql: str) -> list[str]:
    """The sentences about what this query needs, and those that may be about anything."""
    needed = _needed(sql)
    return [words for words, about in traces.lacking(read_about(trace.path)).items() if not about or needed & {*about}]


def without_path(trace: TraceFolder, sql: str) -> list[str]:
    """The sentences on recordings that have no critical path, if this query asks for paths."""
    needed = _needed(sql)
    return list(traces.without_path(read_about(trace.path))) if PATHS in needed and needed != EVERYTHING else []


def _needed(sql: str) -> frozenset[str]:
    """The sources that a query needs; all of them where that is not known."""
    found, waiting, done = set[str](), [sql], set[str]()
    while waiting:
        for name in {each.lower() for each in _USED.findall(waiting.pop())} - done:
            done.add(name)
            if name in OF_ALL:
                return EVERYTHING
            found |= OF_VIEWS.get(name, frozenset())
            if name in views() and name not in OF_VIEWS:
                waiting.append(views()[name].sql)
    return frozenset(found) or EVERYTHING
