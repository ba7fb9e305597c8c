"""Traces as rows of the tables that a profile launch leaves, on the clock of heartbeats."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from castmates.analysis.operations.instructions import LETTERS
from castmates.results.columns.operations import OPERATIONS
from castmates.runner.outcome import Outcome
from castmates.runner.processes.member_log import RangeLog
from castmates.runner.profiles.rounds import Taken
from castmates.runner.rounds.phases import columns_of, share_out
from castmates.traces.devices import DeviceCall, Memory
from castmates.traces.operations import OUTSIDE, Ints, Operation, Trace, step_of
from castmates.traces.reading import Stage
from castmates.workloads.phase_records import Range

AT_ONCE = 500_000  # rows that are in memory as a table
NAMES = pa.dictionary(pa.int32(), pa.string())
TYPES = {"str": NAMES, "int64": pa.int64(), "Int64": pa.int64(), "float64": pa.float64()}


@dataclass(frozen=True)
class Aligned:
    """A trace whose times can be put on the clock of heartbeats, CLOCK_MONOTONIC."""

    trace: Trace
    taken: Taken
    offset_ns: int  # what the real clock is ahead
    alignment_ns: int  # how far apart one moment may be on the two clocks
    common: dict[str, Any]  # what all rows of the trace have in common

    @classmethod
    def of(cls, outcome: Outcome, taken: Taken, trace: Trace) -> "Aligned":
        """Put a trace beside what is known of it."""
        offsets = [real - steady for steady, real, _ in taken.clocks]
        brackets = [bracket for *_, bracket in taken.clocks]
        launch, scene = outcome.launch, taken.scene
        common = {
            "study": launch.study,
            "cohort": launch.cohort.id,
            "launch": launch.number,
            "scene": scene.name,
            "kind": scene.kind,
            "mix": scene.mix,
            "partition": scene.partition,
            "member": launch.cohort.lead.name,
            "round": taken.round,
            "platform": outcome.platform,
        }
        middle = (max(offsets) + min(offsets)) // 2
        return cls(trace, taken, middle, (max(brackets) + max(offsets) - min(offsets) + 1) // 2, common)

    def steady_ns(self, picoseconds: Ints) -> Ints:
        """Times of the trace on the clock of heartbeats."""
        return picoseconds // 1000 + (self.trace.origin_ns - self.offset_ns)


def memory_rows(aligned: Aligned, memory: Memory) -> Iterator[dict[str, Any]]:
    """Rows of `memory`."""
    times = aligned.steady_ns(memory.at_ps).tolist()
    numbers = (memory.step.tolist(), times, memory.change.tolist(), memory.in_use.tolist(), memory.peak.tolist())
    rows = zip(*numbers, memory.allocator, memory.operation, strict=True)
    for step, at_ns, change, in_use, peak, allocator, operation in rows:
        yield aligned.common | {
            "step": step,
            "at_ns": at_ns,
            "change": change,
            "in_use": in_use,
            "peak": peak,
            "allocator": allocator,
            "operation": operation,
        }


def work_rows(aligned: Aligned) -> Iterator[dict[str, Any]]:
    """Rows of `operation_work`."""
    trace = aligned.trace
    number = np.bincount(trace.calls.operation[trace.calls.step >= 0], minlength=len(trace.operations))
    several: dict[tuple[str, str], list[tuple[Operation, int]]] = {}
    for one, count in zip(trace.operations, number.tolist(), strict=True):
        if count:
            several.setdefault((one.name, one.type), []).append((one, count))
    for (name, type_), each in several.items():
        total = sum(count for _, count in each)
        flops = sum(one.work.flops * count for one, count in each) / total
        moved = sum(one.work.bytes * count for one, count in each) / total
        letters = next((LETTERS[one.data_type] for one, _ in each if one.data_type in LETTERS), "")
        if not (math.isnan(flops) and math.isnan(moved)):
            yield aligned.common | {
                "operation": name,
                "type": type_,
                "flops": flops,
                "bytes": moved,
                "data_types": f"src:{letters}" if letters else "",
            }


def stage_rows(aligned: Aligned, stages: Sequence[Stage]) -> Iterator[dict[str, Any]]:
    """Rows of `traced_stages`."""
    for stage in stages:
        yield aligned.common | {
            "depth": len(stage.path),
            "stage": "/".join(stage.path),
            "calls": stage.calls,
            "own_ns": stage.own_ps // 1000,
            "function_ns": stage.function_ps // 1000,
            "waits": stage.waits,
            "threads": len(stage.threads),
        }


def device_rows(aligned: Aligned, calls: Sequence[DeviceCall]) -> Iterator[dict[str, Any]]:
    """Rows of `device_calls`."""
    trace = aligned.trace
    begins, ends = (np.array([getattr(call, side) for call in calls], np.int64) for side in ("begin_ps", "end_ps"))
    times = (
        step_of(begins, trace.step_begin_ps, trace.step_end_ps),
        aligned.steady_ns(begins),
        aligned.steady_ns(ends),
    )
    for call, step, begin, end in zip(calls, *(column.tolist() for column in times), strict=True):
        yield aligned.common | {
            "step": step,
            "device": call.device,
            "stream": call.stream,
            "activity": call.activity,
            "kernel": call.name,
            "operation": call.operation,
            "type": call.type,
            "begin_ns": begin,
            "duration_ns": end - begin,
            "bytes": call.bytes,
            "tensor_cores": call.tensor_cores,
            "correlation": call.correlation,
        }


def steps(aligned: Aligned) -> Iterator[dict[str, Any]]:
    """Rows of `profiled_steps`: usual steps, traced ones, usual ones."""
    taken, trace = aligned.taken, aligned.trace
    yield from _usual(aligned, "before", taken.before)
    begin, end = aligned.steady_ns(trace.step_begin_ps), aligned.steady_ns(trace.step_end_ps)
    # By step: what belongs to no call. A call that lasts into the next step counts in the one in which it began;
    # calls from before count in the first.
    whole = (trace.step_end_ps - trace.step_begin_ps).astype(np.float64)
    called = np.bincount(np.maximum(trace.calls.step, 0), weights=trace.calls.shared_ps, minlength=trace.steps)
    left = (whole - called) / 1e3
    for step in range(trace.steps):
        yield aligned.common | {
            "part": "traced",
            "step": step,
            "heartbeat": taken.first_step + step + 1,
            "begin_ns": int(begin[step]),
            "duration_ns": int(end[step] - begin[step]),
            "unattributed_ns": float(left[step]),
            "threads_intra": taken.threads[0],
            "threads_inter": taken.threads[1],
        }
    yield from _usual(aligned, "after", taken.after)


def _usual(aligned: Aligned, part: str, beats: Sequence[int]) -> Iterator[dict[str, Any]]:
    for step, (begin, end) in enumerate(pairwise(beats)):
        yield aligned.common | {
            "part": part,
            "step": step,
            "heartbeat": None,
            "begin_ns": begin,
            "duration_ns": end - begin,
            "unattributed_ns": None,
            "threads_intra": aligned.taken.threads[0],
            "threads_inter": aligned.taken.threads[1],
        }


def write_operations(aligned: Iterator[Aligned], file: Path) -> None:
    """Write rows of `operations`, one trace after the other, some rows at a time."""
    schema = pa.schema([pa.field(name, TYPES[kind]) for name, kind in OPERATIONS.items()])
    with ParquetWriter(file, schema, compression="zstd") as writer:
        for one in aligned:
            for first in range(0, len(one.trace.calls.begin_ps), AT_ONCE):
                writer.write_table(_operations(one, slice(first, first + AT_ONCE), schema))


def _operations(aligned: Aligned, rows: slice, schema: pa.Schema) -> pa.Table:
    trace, calls = aligned.trace, aligned.trace.calls
    begin, end = aligned.steady_ns(calls.begin_ps[rows]), aligned.steady_ns(calls.end_ps[rows])
    operation, step = calls.operation[rows], calls.step[rows]
    heartbeat = np.where(step == OUTSIDE, 0, aligned.taken.first_step + step + 1)
    named = {
        "operation": [one.name for one in trace.operations],
        "type": [one.type for one in trace.operations],
        "layer": [one.place.layer for one in trace.operations],
        "layer_kind": [one.place.kind for one in trace.operations],
        "direction": [one.place.direction for one in trace.operations],
    }
    columns: dict[str, Any] = {
        "step": step,
        "heartbeat": pa.array(heartbeat, pa.int64(), mask=step == OUTSIDE),
        **{name: _dictionary(operation, values) for name, values in named.items()},
        "thread": _dictionary(calls.thread[rows], trace.threads),
        "begin_ns": begin,
        "duration_ns": end - begin,
        "own_ns": calls.own_ps[rows] // 1000,
        "shared_ns": calls.shared_ps[rows] / 1e3,
        "parent": calls.parent[rows],
    }
    same = np.zeros(len(begin), np.int64)
    for name, value in aligned.common.items():
        columns[name] = _dictionary(same, [value]) if isinstance(value, str) else same + value
    return pa.table({name: columns[name] for name in OPERATIONS}, schema=schema)


def _dictionary(places: Ints, values: Sequence[str]) -> "pa.DictionaryArray[Any]":
    """Names by their places; Arrow wants each name once."""
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    number = np.array([distinct[value] for value in values], np.int32)
    return pa.DictionaryArray.from_arrays(number[places] if len(values) else places.astype(np.int32), list(distinct))


# What a lead annotated near its traces, and which operations began inside of it.
#
# Both are on CLOCK_MONOTONIC; by how much one moment may differ on the two clocks stands beside each trace.

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
