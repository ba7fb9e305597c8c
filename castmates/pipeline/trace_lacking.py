"""What a trace has not of what a query needs: the sentences of its record that are on that."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castmates.linux.tracing_rights import FAMILIES, FAULTS, INTERRUPTS, SCHEDULER, SYSCALLS
from castmates.linux.tracing_shown import SHOWN
from castmates.results import traces
from castmates.study.tracing_design import LATENCIES, STACKS
from castmates.timeline.queries.database import TraceFolder
from castmates.timeline.queries.documents import views
from castmates.timeline.tables import read_about

HEARTBEAT, PROFILE, ANNOTATIONS, NUMBERS, PATHS = "heartbeat", "profile", "annotations", "numbers", "paths"
PERF = frozenset(FAMILIES)
OF_VIEWS: Mapping[str, frozenset[str]] = {  # views whose rows are of some sources alone
    "states": frozenset({SCHEDULER}),
    "wakeups": frozenset({SCHEDULER}),
    "migrations": frozenset({SCHEDULER}),
    "syscalls": frozenset({SYSCALLS}),
    "faults": frozenset({FAULTS}),
    "interrupts": frozenset({INTERRUPTS}),
    "losses": PERF,
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
# How sentences of a record begin, and what they are on; `Not recorded` is parted further.
ABOUT: Mapping[str, frozenset[str]] = {
    "perf:": PERF,
    "stacks:": frozenset({STACKS}),
    "latencies:": frozenset({LATENCIES}),
    "heartbeat:": frozenset({HEARTBEAT}),
    "profile:": frozenset({PROFILE}),
    "numbers:": frozenset({NUMBERS}),
    "annotations of ": frozenset({ANNOTATIONS}),
    "Steps and operations of ": frozenset({PROFILE}),
    "The scheduler's own events": frozenset({SCHEDULER}),
    "States of calls that other threads finish": frozenset({PROFILE}),
    "Wake-ups were not recorded": frozenset({SCHEDULER}),
    "Recorded by control groups": frozenset({SCHEDULER}),
    "System calls were not recorded": frozenset({SCHEDULER, SYSCALLS}),
    "Cache occupancy and memory bandwidth:": frozenset({NUMBERS}),
    "Hardware counters:": frozenset({NUMBERS}),
    "Counts of ": frozenset({NUMBERS}),
    "The clock of CPUs:": frozenset({NUMBERS}),
    "Critical paths:": frozenset({PATHS}),
    "Files beside the tables": frozenset(),
}
_NOT_RECORDED = "Not recorded: "
_USED = re.compile(r"(?:\bFROM|\bJOIN|,)[\s(]*(\w+)", re.IGNORECASE)


def lacking(trace: TraceFolder, sql: str) -> list[str]:
    """The sentences on what this query needs."""
    record = read_about(trace.path)
    return list(_concerning(traces.lacking(record), _needed(sql), record))


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


def _concerning(sentences: Sequence[str], needed: frozenset[str], record: Mapping[str, Any]) -> Iterator[str]:
    """The sentences on what is needed, and those of which it is not known what they are on."""
    rights = {str(each).rstrip(".").lower() for each in dict(record.get("rights") or {}).get("reasons") or ()}
    for sentence in sentences:
        if sentence.startswith(_NOT_RECORDED):
            if lacking := [words for words in _parts(sentence) if _is_on(words, needed)]:
                yield f"{_NOT_RECORDED}{'; '.join(lacking)}."
        elif sentence.rstrip(".").lower() in rights:
            if needed & (PERF | {STACKS, LATENCIES}):
                yield sentence
        elif next((bool(about & needed) for begin, about in ABOUT.items() if sentence.startswith(begin)), True):
            yield sentence


def _parts(sentence: str) -> list[str]:
    return sentence.removeprefix(_NOT_RECORDED).rstrip(".").split("; ")


def _is_on(words: str, needed: frozenset[str]) -> bool:
    """Whether a thing that is not shown is of what is needed; where it is not known, it may be."""
    return next((bool(needed & set(each.families)) for each in SHOWN if each.words == words), True)
