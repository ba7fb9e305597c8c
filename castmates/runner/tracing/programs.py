"""What programs report of themselves, as tracks of a timeline: heartbeats, annotations, their framework's profile."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from castmates.analysis.dataflow.path_states import TracedSteps
from castmates.analysis.explanations.layers import NO_THREAD
from castmates.errors import CastmatesError
from castmates.runner.processes.launch import Running
from castmates.runner.processes.member_log import RangeLog
from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.paths import checked, traced_steps
from castmates.runner.tracing.recorded import Recorded, Traced
from castmates.study.spec import Member
from castmates.timeline.model import Making, Registry
from castmates.traces.devices import DeviceCall
from castmates.traces.nesting import depths, in_order
from castmates.traces.operations import OUTSIDE, Operation, Trace
from castmates.traces.reading import FILES, read
from castmates.traces.xspace import LARGEST_TID
from castmates.workloads.phase_records import Range

HEARTBEAT, PROFILE, ANNOTATIONS = "heartbeat", "profile", "annotations"
INSTANT = "instant"
LATER = f"States of calls that other threads finish: they stand on lines apart ({NO_THREAD}), which are no threads."
NOBODY: Mapping[int, int] = MappingProxyType({})


@dataclass
class Source:
    """What a source gave to a timeline."""

    name: str
    events: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    bytes: int = 0
    alignment_ns: int | None = 0  # how far apart one moment may be on its clock and the timeline's
    reason: str = ""  # why there is nothing
    more: dict[str, Any] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """What the record has of it."""
        facts = {"name": self.name, "events": self.events, "lost": self.lost, "bytes": self.bytes}
        return facts | {"alignment_ns": self.alignment_ns, "reason": self.reason} | self.more


def add_beats(making: Making, registry: Registry, recorded: Recorded, members: Sequence[Member]) -> Source:
    """Heartbeats of everybody, from the scene's settling on."""
    source = Source(HEARTBEAT, lost=sum(recorded.beats_lost.values()))
    units = {member.name: member.unit for member in members}
    for name, beats in recorded.beats.items():
        if beats:
            making.instants(
                t_ns=[t_ns for t_ns, _ in beats],
                track=registry.member(name),
                kind=HEARTBEAT,
                name=units.get(name, "step"),
                value=[count for _, count in beats],
                source=HEARTBEAT,
            )
        source.events[HEARTBEAT] = source.events.get(HEARTBEAT, 0) + len(beats)
    return source


def add_annotations(
    making: Making,
    registry: Registry,
    process: Running,
    spans: Sequence[tuple[int, int]],
    owners: Mapping[int, int] = NOBODY,
) -> Source:
    """What a member annotated while its scenes ran: on its track what the thread of its steps did, else on threads.

    `owners` has the processes of threads, as far as they are known.
    """
    source = Source(f"{ANNOTATIONS} of {process.name}")
    if not isinstance(process.phases, RangeLog):
        return source
    log = process.phases
    found = [one for one in log.ranges() if any(begin <= one.end_ns <= end for begin, end in spans)]
    source.lost = log.lost
    main = Counter(one.thread for one in found if one.type == "phase").most_common(1)
    by_track: dict[tuple[int, str], list[Range]] = {}
    for one in found:
        own = one.thread is None or (bool(main) and one.thread == main[0][0])
        track = (
            registry.member(process.name)
            if own
            else _thread(registry, one.thread or 0, process.pid, owners, member=process.name)
        )
        by_track.setdefault((track, one.type), []).append(one)
    for (track, kind), ones in by_track.items():
        source.events[kind] = len(ones)
        _add_ranges(making, track, kind, ones)
    return source


def _thread(
    registry: Registry, tid: int, leader: int | None, owners: Mapping[int, int], name: str = "", member: str = ""
) -> int:
    """The track of a thread; where its process is not known, the member's first one until a source knows better."""
    return registry.thread(tid, owners.get(tid, leader), name, member, guessed=tid not in owners)


def _add_ranges(making: Making, track: int, kind: str, ones: Sequence[Range]) -> None:
    if kind == INSTANT:
        making.instants(
            t_ns=[one.end_ns for one in ones],
            track=track,
            kind="annotation",
            name=[one.name for one in ones],
            detail=[one.payload for one in ones],
            source=ANNOTATIONS,
        )
        return
    begin, end = (np.array([getattr(one, side) for one in ones], np.int64) for side in ("begin_ns", "end_ns"))
    order = in_order(begin, end)
    ones, begin, end = [ones[place] for place in order.tolist()], begin[order], end[order]
    depth, crosses = depths(begin, end)
    whole = np.flatnonzero(~crosses).tolist()
    making.intervals(
        t0_ns=begin[whole],
        t1_ns=end[whole],
        track=track,
        kind=kind,
        name=[ones[place].name for place in whole],
        depth=depth[whole],
        value=[_number(ones[place].step) for place in whole],
        detail=[ones[place].path for place in whole],
        source=ANNOTATIONS,
    )
    for place in np.flatnonzero(crosses).tolist():  # an interval would not nest
        making.instants(
            t_ns=[begin[place], end[place]],
            track=track,
            kind="annotation",
            name=[f"{ones[place].name} {side}" for side in ("begins", "ends")],
            source=ANNOTATIONS,
        )


def _number(number: int | None) -> float:
    return float("nan") if number is None else float(number)


def add_profile(
    making: Making, registry: Registry, outcome: Traced, recorded: Recorded, traced: list[TracedSteps]
) -> Source | None:
    """Steps, operations, kernels and copies of the lead's framework, on the threads that executed them.

    `traced` gets what its steps consist of, for their critical path.
    """
    taken = recorded.profile
    if taken is None:
        return None
    lead = outcome.launch.cohort.lead.name
    source = Source(PROFILE, reason=taken.reason, alignment_ns=None)
    files = sorted(file for pattern in FILES for file in taken.folder.rglob(pattern)) if taken.folder else []
    if not files:
        source.reason = source.reason or "the profiler left no trace"
        return source
    source.bytes = files[-1].stat().st_size
    try:
        found = read(files[-1])
    except CastmatesError as problem:
        source.reason = str(problem)
        return source
    trace = found.trace
    aligned = Aligned.of(outcome, taken, trace)
    source.alignment_ns = aligned.alignment_ns
    source.more["alignment checked"] = checked(aligned, recorded.beats.get(lead, ()))
    if taken.clocks:
        spans = [steady for steady, _, _ in taken.clocks]
        source.more["span_ns"] = [min(spans), max(spans)]
        making.intervals(
            t0_ns=[min(spans)], t1_ns=[max(spans)], track=registry.member(lead), kind="profiled", name="profiler on",
            source=PROFILE,
        )  # fmt: skip
    _add_steps(making, registry.member(lead), aligned)
    tracks, unknown = _tracks_of(making, registry, outcome, recorded, trace)
    source.more["threads not found"] = unknown
    if any(_is_no_thread(name) for name in trace.threads):
        source.more["missing"] = {LATER: [PROFILE]}
    _add_operations(making, tracks, aligned)
    traced.append(traced_steps(aligned, tracks, recorded))
    source.events = {"step": trace.steps, "operation": len(trace.calls.begin_ps)}
    for activity, calls in _by_activity(found.devices).items():
        source.events[activity] = len(calls)
        _add_device_calls(making, registry, lead, aligned, activity, calls)
    return source


def _add_steps(making: Making, track: int, aligned: Aligned) -> None:
    trace = aligned.trace
    making.intervals(
        t0_ns=aligned.steady_ns(trace.step_begin_ps),
        t1_ns=aligned.steady_ns(trace.step_end_ps),
        track=track,
        kind="step",
        name="step",
        value=aligned.taken.first_step + 1 + np.arange(trace.steps),
        source=PROFILE,
    )


def _tracks_of(
    making: Making, registry: Registry, outcome: Traced, recorded: Recorded, trace: Trace
) -> tuple[list[int], int]:
    """By thread of the trace, its track; and how many could not be found among the system's threads."""
    lead = outcome.launch.cohort.lead.name
    pid = next((process.pid for process in outcome.cast if process.name == lead), None)
    tracks: list[int] = []
    unknown = 0
    for place, name in enumerate(trace.threads):
        line = trace.tids[place] if place < len(trace.tids) else 0
        tid = recorded.threads.get(line) or (line if 0 < line <= LARGEST_TID else 0)
        name = name.partition("/")[0]  # what follows is a number that no other source knows
        track = _thread(registry, tid, pid, recorded.processes, name, lead) if tid else None
        if track is None or track in tracks:  # two lines of one thread might cross
            unknown += track is None and not _is_no_thread(name)
            track = making.track("thread", name, registry.member(lead), member=lead)
        tracks.append(track)
    return tracks, unknown


def _is_no_thread(name: str) -> bool:
    return name.partition("/")[0] == NO_THREAD


def _add_operations(making: Making, tracks: Sequence[int], aligned: Aligned) -> None:
    trace, calls = aligned.trace, aligned.trace.calls
    if not len(calls.begin_ps):
        return
    depth, above = np.zeros(len(calls.parent), np.int64), calls.parent
    while (inner := above >= 0).any():
        depth += inner
        above = np.where(inner, calls.parent[above], -1)
    number = np.where(calls.step == OUTSIDE, np.nan, aligned.taken.first_step + calls.step + 1.0)
    making.intervals(
        t0_ns=aligned.steady_ns(calls.begin_ps),
        t1_ns=aligned.steady_ns(calls.end_ps),
        track=np.array(tracks, np.int64)[calls.thread],
        kind="operation",
        name=_words([_name(one) for one in trace.operations], calls.operation),
        depth=depth,
        value=number,
        detail=_words([one.type for one in trace.operations], calls.operation),
        source=PROFILE,
    )


def _name(operation: Operation) -> str:
    return operation.name or operation.type


def _words(names: Sequence[str], places: Any) -> Any:  # noqa: ANN401 (arrays, and pandas' categories)
    import pandas as pd

    distinct = {name: number for number, name in enumerate(dict.fromkeys(names))}
    codes = np.array([distinct[name] for name in names], np.int32)[places]
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(distinct), dtype="str"))


def _by_activity(calls: Sequence[DeviceCall]) -> dict[str, list[DeviceCall]]:
    found: dict[str, list[DeviceCall]] = {}
    for call in calls:
        found.setdefault(call.activity, []).append(call)
    return found


def _add_device_calls(
    making: Making, registry: Registry, lead: str, aligned: Aligned, activity: str, calls: Sequence[DeviceCall]
) -> None:
    begins, ends = (np.array([getattr(call, side) for call in calls], np.int64) for side in ("begin_ps", "end_ps"))
    making.intervals(
        t0_ns=aligned.steady_ns(begins),
        t1_ns=aligned.steady_ns(ends),
        track=[registry.device(f"{call.device} {call.stream}", lead) for call in calls],
        kind=activity,
        name=[call.name for call in calls],
        value=[float(call.bytes) if call.bytes else float("nan") for call in calls],
        detail=[call.operation for call in calls],
        source=PROFILE,
    )
