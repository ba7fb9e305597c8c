"""What a lead annotated near its traces, and which operations began inside of it.

Both are on CLOCK_MONOTONIC; by how much one moment may differ on the two clocks stands beside each trace.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from castmates.runner.outcome import Outcome
from castmates.runner.processes.range_log import RangeLog
from castmates.runner.profiles.tables import Aligned
from castmates.runner.rounds.ranges import columns_of, share_out
from castmates.traces.operations import Ints
from castmates.workloads.phase_records import Range

Row = dict[str, Any]
Key = tuple[str, str]  # domain and path
INSTANT = "instant"
BEFORE, TRACED, AFTER = "before", "traced", "after"


def log_of(outcome: Outcome) -> RangeLog | None:
    """The lead's log of ranges, where they are kept."""
    lead = outcome.launch.cohort.lead.name
    log = next((process.phases for process in outcome.cast if process.name == lead), None)
    return log if isinstance(log, RangeLog) else None


def near(aligned: Aligned, ranges: Sequence[Range]) -> Iterator[Row]:
    """Rows of `profile_ranges`: those that ended between the first usual step and the last one."""
    taken = aligned.taken
    if not taken.before or not taken.after:
        return
    for one in ranges:
        if taken.before[0] < one.end_ns <= taken.after[-1]:
            part = BEFORE if one.end_ns <= taken.before[-1] else AFTER if one.end_ns > taken.after[0] else TRACED
            yield aligned.common | columns_of(one) | {"part": part}


def fitting(rows: Sequence[Row], log: RangeLog) -> list[Row]:
    """As many rows as are kept, of every trace an equal number; how many do not fit is noted in the log."""
    kept = share_out([(row["scene"], row["round"]) for row in rows], log.most)
    log.left_out = len(rows) - sum(kept)
    return [row for row, keep in zip(rows, kept, strict=True) if keep]


def joined(aligned: Aligned, ranges: Sequence[Range]) -> Iterator[Row]:
    """Rows of `operation_ranges`: by range, the operations whose calls began in a traced step while it was open.

    A call counts in every range that was open then, inner and outer ones, on whichever thread.
    """
    trace, calls = aligned.trace, aligned.trace.calls
    begins = aligned.steady_ns(calls.begin_ps)
    within = calls.step >= 0
    if not within.any():
        return
    names = [(one.name, one.type, one.place.layer, one.place.direction) for one in trace.operations]
    first, last = begins[within].min(), begins[within].max()
    for (domain, path), spans in _spans(ranges, int(first), int(last)).items():
        inside = within & _covered(begins, spans)
        if not inside.any():
            continue
        operation = calls.operation[inside]
        size = len(names)
        number = np.bincount(operation, minlength=size)
        own = np.bincount(operation, weights=calls.own_ps[inside], minlength=size)
        shared = np.bincount(operation, weights=calls.shared_ps[inside], minlength=size)
        for place in np.flatnonzero(number):
            name, type_, layer, direction = names[place]
            yield aligned.common | {
                "path": path,
                "domain": domain,
                "operation": name,
                "type": type_,
                "layer": layer,
                "direction": direction,
                "calls": int(number[place]),
                "own_ns": round(own[place] / 1e3),
                "shared_ns": float(shared[place]) / 1e3,
            }


def _spans(ranges: Sequence[Range], first_ns: int, last_ns: int) -> dict[Key, list[tuple[int, int]]]:
    """By domain and path the times in which some range of this name was open, as far as they meet the trace."""
    spans: dict[Key, list[tuple[int, int]]] = {}
    for one in ranges:
        if one.type != INSTANT and one.begin_ns <= last_ns and one.end_ns >= first_ns:
            spans.setdefault((one.domain, one.path), []).append((one.begin_ns, one.end_ns))
    return spans


def _covered(moments: Ints, spans: Sequence[tuple[int, int]]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which of these moments lie in some span, its end not included."""
    begins, ends = np.sort([begin for begin, _ in spans]), np.sort([end for _, end in spans])
    return np.searchsorted(begins, moments, side="right") > np.searchsorted(ends, moments, side="right")
