"""What a study traces beside what it measures, in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from castmates.english import counted, duration, listed, size
from castmates.results.folder import StudyFolder
from castmates.results.profiles import missing_profiles, records_there
from castmates.results.traces import missing_traces, read_record, room_for, traces_there
from castmates.study.model import Study
from castmates.study.profile_launches import (
    CANNOT_BEGIN,
    CANNOT_LOG,
    WHO_CAN,
    cannot_be_profiled,
    cannot_begin_anew,
    cannot_log,
    is_logged,
    is_of_first_epoch,
    traces_of,
)
from castmates.study.spec import Launch, Plan
from castmates.study.trace_launches import most_bytes, profiled_steps, recorded_members, scenes_of_trace, trace_name

LAUNCH = 12.0  # seconds that the start of a launch takes: a guess until one was made; its traces come on top
TRACE = 1.5  # seconds of one trace, its usual steps and its settling included: a guess for short steps


def profile_words(study: Study, plan: Plan, folder: StudyFolder) -> str:
    """A sentence or two; "" where nothing is traced."""
    if study.profile is None:
        return ""
    parts, missing = [], set(missing_profiles(plan, folder))
    if plan.profiles:
        leads = listed(list(dict.fromkeys(launch.cohort.lead.workload for launch in plan.profiles)))
        left = [launch for launch in plan.profiles if launch.path in missing]
        time = f", {tracing_time(left, folder)}" if left else ", all there"
        many = counted(len(plan.profiles), "launch")
        parts.append(f"{many} in which steps of {leads} are traced, apart from what is measured{time}.")
    if logged := sum(map(is_logged, plan.profiles)):
        parts.append(f"In {logged} of them oneDNN logs its primitives; their times are compared with each other alone.")
    if first := sum(map(is_of_first_epoch, plan.profiles)):
        parts.append(f"In {first} of them each trace begins with the first record, read from storage or from memory.")
    if without := cannot_begin_anew(study, plan):
        parts.append(f"{listed(without)} {CANNOT_BEGIN}.")
    if without := cannot_log(study, plan):
        parts.append(f"{listed(without)} {CANNOT_LOG}.")
    if plan.profiles and study.profile.ranges:
        parts.append(_ranges(study.profile.ranges, plan))
    if cannot := cannot_be_profiled(study, plan):
        parts.append(f"{listed(cannot)} cannot be traced: {WHO_CAN} (castmates help operations).")
    return " ".join(parts)


def tracing_time(launches: Iterable[Launch], folder: StudyFolder) -> str:
    """How long these launches take, as those took that were made; else a guess, which says where it holds."""
    made = [record for record in records_there(folder) if _traces(record)]
    seconds = sum(_seconds(launch, made) for launch in launches)
    return f"about {duration(seconds)}" + ("" if made else " where steps are short")


def _seconds(launch: Launch, made: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of a launch by those of the same lead, else by all of the study, else by a guess."""
    lead = launch.cohort.lead.workload
    known = [record for record in made if record.get("lead") == lead] or made
    if not known:
        return LAUNCH + TRACE * traces_of(launch)
    took = [(float(record["seconds"]["total"]), float(record["seconds"]["trace"]), _traces(record)) for record in known]
    start = fmean(total - tracing for total, tracing, _ in took)
    return start + traces_of(launch) * sum(tracing for _, tracing, _ in took) / sum(traces for _, _, traces in took)


def _traces(record: Mapping[str, Any]) -> int:
    """How many traces a launch took that went through; 0 for one that failed."""
    return len(record["traces"]) if record.get("status") == "measured" else 0


def _ranges(most: int, plan: Plan) -> str:
    """A sentence on what leads annotate."""
    if any(launch.cohort.lead.phases for launch in plan.profiles):
        return f"Up to {most:,} annotations of each launch are kept and joined to operations."
    return "'profile.ranges' keeps nothing: none of these leads has 'phases: true'."


# What a study or a command records in trace launches, in words.

_TRACES_LAUNCH, AROUND = 15.0, 8.0  # seconds of a launch's start, and of a recording beside what it records: guesses
KEPT = ("launch", "warm_up")  # of the seconds in records, those that do not depend on what is recorded


def trace_words(study: Study, plan: Plan, folder: StudyFolder) -> str:
    """A sentence; "" where no sweep makes traces."""
    if study.trace is None or not plan.traces:
        return ""
    left = missing_traces(plan, folder)
    time = f"about {duration(recording_seconds(left, folder))}" if left else "all there"
    many = counted(len(plan.traces), "launch")
    names = listed([trace_name(launch) for launch in plan.traces])
    return f"{many} apart from what is measured, in which everything that happens is recorded, {time}: {names}."


def recording_seconds(launches: Iterable[Launch], folder: StudyFolder) -> float:
    """How long these launches take: as earlier ones of the same lead took, or any of the study; else a guess."""
    made = [record for name in traces_there(folder) if (record := read_record(folder, name)).get("seconds")]
    return sum(_whole(launch, made) for launch in launches)


def _whole(launch: Launch, made: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of a launch by the records of those that were made."""
    lead = [record for record in made if record.get("lead") == launch.cohort.lead.name]
    known = [record["seconds"] for record in lead or made]
    starts = [sum(float(each.get(part) or 0) for part in KEPT) for each in known]
    return max(starts, default=_TRACES_LAUNCH) + _traces_seconds(launch)


def trace_lines(launch: Launch, folder: StudyFolder, families: Sequence[str], why: Sequence[str]) -> Iterator[str]:
    """What one launch records here, in lines, and how much disk that may take until it is read.

    `families` of events can be recorded here; `why` has the reasons for what cannot.
    """
    tracing = launch.design.tracing
    assert tracing is not None
    scenes = [scene.name for scene in scenes_of_trace(launch.cohort)]
    yield f"trace {trace_name(launch)}: {listed(scenes)}, {tracing.seconds:g} s of each" + (
        f", {tracing.rounds} times" if tracing.rounds > 1 else ""
    )
    if families:
        yield f"  perf: {', '.join(families)} of {listed(recorded_members(launch))}; of nobody else"
    if tracing.counts:
        yield f"  perf: a sample of every {listed([f'{period:,} {event}' for event, period in tracing.counts])}"
    if lacking := [family for family in tracing.events if family not in families]:
        yield f"  not recorded here: {', '.join(lacking)} ({'; '.join(why)})"
    if steps := profiled_steps(launch):
        yield f"  {launch.cohort.lead.workload}: {counted(steps, 'step')} of each recording profiled by its framework"
    yield f"  about {duration(recording_seconds([launch], folder))}"
    if families:
        most, free = most_bytes(launch), room_for(folder.trace(trace_name(launch)))
        yield f"  up to {size(most)} of recordings on disk until they are read; {size(free)} are free"


def _traces_seconds(launch: Launch) -> float:
    tracing = launch.design.tracing
    if tracing is None:
        return 0.0
    return tracing.rounds * len(scenes_of_trace(launch.cohort)) * (tracing.seconds + AROUND)
