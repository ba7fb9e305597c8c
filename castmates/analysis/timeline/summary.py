"""A trace -> the rows of the study's tables of traces: `results.columns.trace_summary`.

Among them how many steps a member made while events were recorded, and which of them took longest.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castmates.analysis.timeline.families import OF_FAMILY, OF_INPUT, lacking
from castmates.analysis.timeline.seen import NAN, SeenScene, Spans, Trace, lasting, seen_scenes
from castmates.analysis.timeline.waits import (
    BLOCKED,
    INTERRUPTS,
    MEMORY_CALLS,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    SYSCALL,
    UNKNOWN,
    behind,
    calls_of,
    events,
    input_only_share,
    latencies_us,
    of_member,
    pools,
    running_within,
    seconds_in,
    unnamed,
    unwoken,
    waits,
)

Floats = NDArray[np.float64]
Row = dict[str, object]
TABLES = ("trace_summary", "trace_waits", "trace_events", "trace_pools")
IDLE = "idle"  # whom perf shows to have had the CPU where nobody did
NOBODY = ("", IDLE, UNKNOWN)  # no program took the CPU, or it is not known which
REMOTE = "remote_memory_share"  # samples on a member's track: how much of its memory, or of its accesses, is remote


@dataclass(frozen=True)
class Longest:
    """The longest step that was recorded as a whole."""

    at_s: float = NAN  # from the first event of the trace
    ms: float = NAN


def steps(trace: Trace, spans: Spans, member: str) -> float:
    """Units of progress in these spans, parts of units included; NaN where nothing shows them.

    Between two heartbeats progress is even; what lies before the first or after the last one is as fast as the rest.
    The view `progress` of queries counts alike.
    """
    at, count = _marks(trace, member)
    if len(at) < 2:
        return NAN
    begin, end = (np.clip(np.asarray(edge, dtype=float), at[0], at[-1]) for edge in spans)
    known = float((end - begin).sum())
    done = float((np.interp(end, at, count) - np.interp(begin, at, count)).sum())
    return done * float((spans[1] - spans[0]).sum()) / known if known > 0 else NAN


def longest(seen: SeenScene, member: str) -> Longest:
    """The longest step that begins and ends in a recording: between two heartbeats, or as the member reports steps.

    Heartbeats show every step, and steps that a profiler reports are few, and slower.
    """
    beats = _beats(seen.trace, member)["t_ns"].to_numpy()
    own = _steps(seen.trace, member)
    begin, end = (beats[:-1], beats[1:]) if len(beats) > 1 else (own["t0_ns"].to_numpy(), own["t1_ns"].to_numpy())
    inside = np.zeros(len(begin), bool)
    for first, last in zip(*seen.recordings, strict=True):
        inside |= (begin >= first) & (end <= last)
    if not inside.any():
        return Longest()
    took = np.where(inside, end - begin, -1)
    at = int(took.argmax())
    return Longest(float(begin[at] - seen.trace.first_ns) / 1e9, float(took[at]) / 1e6)


def _marks(trace: Trace, member: str) -> tuple[Floats, Floats]:
    """Moments, and how many units were done by then: heartbeats, or else where steps begin, and the last one ends."""
    beats = _beats(trace, member)
    if len(beats) > 1:
        return beats["t_ns"].to_numpy(dtype=float), _counted(beats)
    own = _steps(trace, member)
    at = np.append(own["t0_ns"].to_numpy(dtype=float), own["t1_ns"].max() if len(own) else [])
    return at, np.arange(len(at), dtype=float)


def _beats(trace: Trace, member: str) -> pd.DataFrame:
    beats = trace.instants[trace.instants["kind"] == "heartbeat"]
    return beats[trace.member_of(beats["track"]) == member]


def _counted(beats: pd.DataFrame) -> np.ndarray:
    """The count at each heartbeat; where they carry none, each is one."""
    value = beats["value"].to_numpy(dtype=float)
    return np.arange(len(beats), dtype=float) if np.isnan(value).any() else value


def _steps(trace: Trace, member: str) -> pd.DataFrame:
    own = trace.intervals[(trace.intervals["kind"] == "step") & (trace.intervals["depth"] == 0)]
    return own[trace.member_of(own["track"]) == member]


def summaries(timelines: Iterable[Trace]) -> dict[str, list[Row]]:
    """The rows of all traces, by table."""
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for trace in timelines:
        for name, rows in rows_of(trace).items():
            found[name] += rows
    return found


def rows_of(trace: Trace) -> dict[str, list[Row]]:
    """The rows of one trace, by table."""
    made: dict[str, list[Row]] = {name: [] for name in TABLES}
    for each in seen_scenes(trace):
        for member in each.members:
            done = steps(each.trace, each.spans, member)
            made["trace_summary"].append(_summary(each, member, done))
            made["trace_waits"] += waits(each, member, done)
            made["trace_events"] += events(each, member, done)
            made["trace_pools"] += pools(each, member)
    _compare_faults(made["trace_summary"])
    return made


def _summary(seen: SeenScene, member: str, done: float) -> Row:
    own = of_member(seen.states, member)
    time = seconds_in(own)
    place = longest(seen, member)
    row = seen.names(member) | {
        "seconds": lasting(seen.recordings),
        "steps": steps(seen.trace, seen.recordings, member),
        "threads": int(own["track"].nunique()),
        "running": _over(time[RUNNING], seen.seconds),
        "queued": _over(time[RUNNABLE] + time[PREEMPTED], seen.seconds),
        "blocked": _over(time[BLOCKED], seen.seconds),
        **_queued(seen, own, member, time),
        **_switches(seen, own, member, time[RUNNING]),
        **_latencies(own),
        "wakeups_seen": _wakeups_seen(own),
        **_faults(seen, member, time[RUNNING], done),
        **_memory_calls(seen, own, member, time[RUNNING], done),
        **_interrupts(seen, member, time[RUNNING]),
        "input_only_share": input_only_share(seen, own, member),
        "remote_share": _remote(seen, member),
        "slower": _slower(seen, member),
        "lost": sum(int(source.get("lost") or 0) for source in seen.trace.about.get("sources", ())),
        "longest_step_at_s": place.at_s,
        "longest_step_ms": place.ms,
        "seen_seconds": seen.seconds,
        "not_known": "; ".join(_not_known(seen, own, member)),
        "unknown": _over(time[UNKNOWN], seen.seconds),
    }
    nothing = (column for family, columns in OF_FAMILY.items() if family not in seen.families for column in columns)
    return row | dict.fromkeys(nothing, NAN)


def _not_known(seen: SeenScene, own: pd.DataFrame, member: str) -> Iterator[str]:
    yield from lacking(seen.families, *OF_FAMILY)
    if not seen.seconds:
        yield "no stretch of its recordings is whole"
    if count := unnamed(seen, own, member):
        yield f"{OF_INPUT}: {count} have no name but the program's"


def _queued(seen: SeenScene, own: pd.DataFrame, member: str, time: Mapping[str, float]) -> Row:
    """How much of the time in which threads could run they did not, and who ran instead."""
    could_run = time[RUNNING] + time[RUNNABLE] + time[PREEMPTED]
    by_whom = behind(own)
    members = sum(each for who, each in by_whom.items() if who != member and who in seen.trace.members)
    others = sum(each for who, each in by_whom.items() if who not in NOBODY and who not in seen.trace.members)
    parts = {
        "queued_share": time[RUNNABLE] + time[PREEMPTED],
        "queued_own": by_whom.get(member, 0.0),
        "queued_members": members,
        "queued_others": others,
        "queued_idle": by_whom.get(IDLE, 0.0),
    }
    outside = {who: each for who, each in by_whom.items() if who not in (*NOBODY, member)}
    shares = {name: part / could_run if could_run else NAN for name, part in parts.items()}
    return shares | {"taken_by": max(outside, key=outside.__getitem__) if outside else ""}


def _switches(seen: SeenScene, own: pd.DataFrame, member: str, running: float) -> Row:
    begins = own[own["begins"]]["name"].value_counts()
    instants = of_member(seen.instants, member)["kind"].value_counts()
    moves = int(instants.get("migration", 0))
    return {
        "voluntary_per_s": _over(int(begins.get(BLOCKED, 0)) + int(unwoken(own)["begins"].sum()), seen.seconds),
        "involuntary_per_s": _over(int(begins.get(PREEMPTED, 0)), seen.seconds),
        "migrations_per_s": _over(moves, seen.seconds),
        "migrations_per_cpu_s": _over(moves, running),
        "wakeups_per_s": _over(int(begins.get(RUNNABLE, 0)), seen.seconds),
    }


def _latencies(own: pd.DataFrame) -> Row:
    took = latencies_us(own)
    names = {"queue_p50_us": 50, "queue_p95_us": 95, "queue_p99_us": 99, "queue_max_us": 100}
    return {name: float(np.percentile(took, share)) if len(took) else NAN for name, share in names.items()}


def _wakeups_seen(own: pd.DataFrame) -> float:
    """Of the waits that ended in whole: the share whose wake-up was seen, so that its latency is known."""
    known, not_known = len(latencies_us(own)), int(unwoken(own)["whole"].sum())
    return _over(known, known + not_known)


def _faults(seen: SeenScene, member: str, running: float, done: float) -> Row:
    count = int((of_member(seen.instants, member)["kind"] == "fault").sum())
    return {
        "faults_per_s": _over(count, seen.seconds),
        "faults_per_cpu_s": _over(count, running),
        "faults_per_step": _over(count, done),
        "faults_ratio": NAN,
    }


def _memory_calls(seen: SeenScene, own: pd.DataFrame, member: str, running: float, done: float) -> Row:
    calls = calls_of(seen, member)
    calls = calls[(calls["kind"] == SYSCALL) & calls["name"].isin(MEMORY_CALLS)]
    took = running_within(own, calls)
    return {
        "memory_calls_per_step": _over(int(calls["begins"].sum()), done),
        "memory_calls_ms": _over(1e3 * took, done),
        "memory_calls_share": _over(took, running),
    }


def _interrupts(seen: SeenScene, member: str, running: float) -> Row:
    """perf sees an interrupt of a member only while one of its threads is on the CPU: hence of that time."""
    calls = calls_of(seen, member)
    calls = calls[calls["kind"].isin(INTERRUPTS)]
    took = float((calls["t1_ns"] - calls["t0_ns"]).sum()) / 1e9
    return {
        "interrupts_per_s": _over(int(calls["begins"].sum()), seen.seconds),
        "interrupts_share": _over(took, running),
    }


def _remote(seen: SeenScene, member: str) -> float:
    samples = seen.trace.samples
    samples = samples[samples["name"] == REMOTE]
    samples = samples[seen.trace.member_of(samples["track"]) == member]
    at = samples["t_ns"].to_numpy()
    inside = np.zeros(len(samples), bool)
    for begin, end in zip(*seen.recordings, strict=True):
        inside |= (at >= begin) & (at <= end)
    return float(samples["value"][inside].mean()) if inside.any() else NAN


def _slower(seen: SeenScene, member: str) -> float:
    """What recording costs the lead, by the record of the launch."""
    known = [each.get("slower") for each in seen.trace.about.get("scenes", ()) if each.get("scene") == seen.scene]
    known = [float(each) for each in known if each is not None]
    return float(np.mean(known)) if known and member == seen.trace.lead else NAN


def _compare_faults(rows: list[Row]) -> None:
    """Faults of a step against those of the same member alone, where it was recorded alone too."""
    alone = {row["member"]: float(str(row["faults_per_step"])) for row in rows if row["kind"] == "alone"}
    for row in rows:
        row["faults_ratio"] = _over(float(str(row["faults_per_step"])), alone.get(row["member"], NAN))


def _over(number: float, by: float) -> float:
    return number / by if by > 0 else NAN
