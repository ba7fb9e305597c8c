"""What a trace shows beside operations: what ran on the streams of GPUs, and what allocators gave out and took back.

Made after what TensorFlow and XLA publish of their traces (cupti_collector.cc, xplane_schema.cc) and compared with
XProf; no trace of a real GPU was at hand. A plane is a GPU, its lines are streams, and statistics of an event name its
operation. Lines that profile tools derive from these, such as "XLA Ops", are left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from castmates.traces.nesting import NOBODY
from castmates.traces.operations import Ints, Trace, identity, step_of
from castmates.traces.xspace import EventName, Line, Plane, Space, StatValue
from castmates.workloads.tfmodels.xspace import HOST

GPU, STREAM = "/device:GPU:", "Stream"  # what the names of planes and lines begin with
OPERATION, HLO, CORRELATION = "tf_op", "hlo_op", "correlation_id"
KINDS = {  # the statistic that an event of each kind has
    "kernel_details": "kernel",
    "memcpy_details": "copy",
    "Memset_details": "set",
    "memalloc_details": "memory",
    "MemFree_details": "memory",
    "MemoryResidency_details": "memory",
}
STATS = (OPERATION, HLO, CORRELATION, *KINDS)
_COPIED = re.compile(r"(?:^|\s)(?:size|num_bytes):(\d+)")
# What NVIDIA's libraries put into the names of kernels whose products tensor cores make: the shape of one instruction
# (m8n8k4, m16n8k8, m16n8k16, m8n8k16, m16n8k32 …) or its name; those with simt or ffma are made elsewhere.
_TENSOR = re.compile(
    r"(?<!\d)(?:884|1688|16816|8816|16832|16864|8832)(?!\d)|[hi]mma|w?gmma|xmma|tensor_?op", re.IGNORECASE
)
_PLAIN = re.compile(r"simt|ffma", re.IGNORECASE)


@dataclass(frozen=True)
class DeviceCall:
    """Something that ran on a stream."""

    device: str  # GPU:0
    stream: str
    activity: str  # kernel, copy, set, memory, other
    name: str  # of the kernel; MemcpyH2D
    operation: str  # with its scopes; "" where that is not known
    type: str  # of the operation
    begin_ps: int  # from the trace's origin, as operations
    end_ps: int
    bytes: int  # that a copy moves, or memory has
    tensor_cores: bool  # by its name
    correlation: int  # the number that CUDA gives a launch; 0 for none


def read_devices(path: Path, trace: Trace) -> list[DeviceCall]:
    """Read what ran on GPUs in a trace that was read; nothing where it has none."""
    with Space(path) as space:
        found = [
            call
            for plane in space.planes()
            if plane.name.startswith(GPU)
            for line in plane.lines()
            for call in _of_line(plane, line, trace)
        ]
    return sorted(found, key=lambda call: (call.begin_ps, call.device, call.stream))


def uses_tensor_cores(kernel: str) -> bool:
    """Whether the products of a kernel of this name are made by tensor cores."""
    return bool(_TENSOR.search(kernel)) and not _PLAIN.search(kernel)


def _of_line(plane: Plane, line: Line, trace: Trace) -> Iterator[DeviceCall]:
    stream = line.display_name or line.name
    if not line.name.startswith(STREAM):
        return
    start = 1000 * (line.timestamp_ns - trace.first_ns)
    for events in line.events(STATS):
        for place, (kind, offset, duration) in enumerate(
            zip(events.kinds.tolist(), events.offset_ps.tolist(), events.duration_ps.tolist(), strict=True)
        ):
            about = plane.event_names.get(kind, EventName(""))
            facts = {name: values[place] for name, values in events.stats.items() if place in values}
            yield _call(plane, stream, about, {**(about.stats or {}), **facts}, start + offset, duration)


def _call(
    plane: Plane, stream: str, about: EventName, facts: Mapping[str, StatValue], begin: int, duration: int
) -> DeviceCall:
    """What an event shows, of its own statistics or those of its name."""
    kind = next((kind for name, kind in KINDS.items() if name in facts), "other")
    details = next((str(facts[name]) for name in KINDS if name in facts), "")
    copied = _COPIED.search(details)
    name, _, type_ = str(facts.get(OPERATION) or facts.get(HLO) or "").partition(":")
    kernel = about.display_name or about.name
    correlation = facts.get(CORRELATION)
    return DeviceCall(
        device=plane.name.removeprefix("/device:"),
        stream=stream,
        activity=kind,
        name=kernel,
        operation=identity(name),
        type=type_,
        begin_ps=begin,
        end_ps=begin + duration,
        bytes=int(copied[1]) if copied and kind != "kernel" else 0,
        tensor_cores=kind == "kernel" and uses_tensor_cores(kernel),
        correlation=correlation if isinstance(correlation, int) else 0,
    )


SIGNS = {"MemoryAllocation": 1, "MemoryDeallocation": -1}
MEMORY_STATS = ("allocator_name", "bytes_allocated", "allocation_bytes", "peak_bytes_in_use", "tf_op")


@dataclass(frozen=True)
class Memory:
    """Allocations and what was given back, in the order of time."""

    at_ps: Ints
    step: Ints  # from 0; -1 outside of steps
    change: Ints  # bytes; negative where memory was given back
    in_use: Ints  # bytes of its allocator, right after
    peak: Ints  # the same at most, since the job's start
    allocator: list[str]
    operation: list[str]  # for which it was; "" where that is not known


class _Change(NamedTuple):
    """One allocation, or what was given back."""

    at_ps: int
    bytes: int
    in_use: int
    peak: int
    allocator: str
    operation: str


def read_memory(path: Path, trace: Trace) -> Memory:
    """Read what allocators reported in a trace that was read; nothing where they reported nothing."""
    with Space(path) as space:
        changes = [each for plane in space.planes() if plane.name == HOST for each in _changes(plane, trace)]
    changes.sort(key=lambda change: change.at_ps)
    at, change, in_use, peak = (
        np.array([getattr(each, name) for each in changes], np.int64) for name in ("at_ps", "bytes", "in_use", "peak")
    )
    step = step_of(at, trace.step_begin_ps, trace.step_end_ps)
    allocators, operations = [each.allocator for each in changes], [each.operation for each in changes]
    return Memory(at, step, change, in_use, peak, allocators, operations)


def _changes(host: Plane, trace: Trace) -> Iterator[_Change]:
    signs = {number: SIGNS[name.name] for number, name in host.event_names.items() if name.name in SIGNS}
    parts = ((line, events) for line in host.lines() for events in line.events(MEMORY_STATS, signs))
    for line, events in parts if signs else ():
        start, kinds = 1000 * (line.timestamp_ns - trace.first_ns), events.kinds.tolist()
        for place in [place for place, kind in enumerate(kinds) if kind in signs]:
            facts = {name: values.get(place, 0) for name, values in events.stats.items()}
            yield _Change(
                at_ps=start + int(events.offset_ps[place]),
                bytes=signs[kinds[place]] * _number(facts.get("allocation_bytes")),
                in_use=_number(facts.get("bytes_allocated")),
                peak=_number(facts.get("peak_bytes_in_use")),
                allocator=str(facts.get("allocator_name") or ""),
                operation=identity(str(facts.get("tf_op") or "")),
            )


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


# Memory of PyTorch, by events of a trace.

NS, PS = 1000, 1000  # in a microsecond, in a nanosecond


@dataclass(frozen=True)
class Given:
    """Memory that was given out or taken back."""

    ts: float
    thread: int
    change: int
    allocator: str


def memory_of(given: list[Given], trace: Trace, first_ns: int) -> Memory:
    """What allocators did; what is in use counts from the beginning of the trace."""
    given = sorted(given, key=lambda one: one.ts)
    at = np.array([round(one.ts * NS) - first_ns for one in given], np.int64) * PS
    change = np.array([one.change for one in given], np.int64)
    allocators = [one.allocator for one in given]
    in_use, peak = np.zeros(len(given), np.int64), np.zeros(len(given), np.int64)
    for name in set(allocators):
        own = np.array([one == name for one in allocators])
        in_use[own] = np.cumsum(change[own])
        peak[own] = np.maximum.accumulate(in_use[own])
    step = step_of(at, trace.step_begin_ps, trace.step_end_ps)
    callers = _callers(trace, np.array([one.thread for one in given], np.int64), at)
    names = [trace.operations[trace.calls.operation[place]].name if place != NOBODY else "" for place in callers]
    return Memory(at, step, change, in_use, peak, allocators, names)


def _callers(trace: Trace, thread: Ints, at: Ints) -> Ints:
    """The call that is open on a thread at a moment, the innermost; -1 for none."""
    calls = trace.calls
    places = np.full(len(at), NOBODY, np.int64)
    for number in np.unique(thread):
        own, asked = np.flatnonzero(calls.thread == number), np.flatnonzero(thread == number)
        before = np.searchsorted(calls.begin_ps[own], at[asked], "right") - 1
        places[asked] = np.where(before >= 0, own[np.maximum(before, 0)] if len(own) else NOBODY, NOBODY)
    while (past := (places != NOBODY) & (calls.end_ps[places] < at)).any():
        places[past] = calls.parent[places[past]]
    return places
