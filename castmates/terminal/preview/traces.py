"""What a study or a command records in trace launches, in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from castmates.english import counted, duration, listed, size
from castmates.results.folder import StudyFolder
from castmates.results.traces import missing_traces, read_record, room_for, traces_there
from castmates.study.model import Study
from castmates.study.spec import Launch, Plan
from castmates.study.trace_launches import most_bytes, profiled_steps, recorded_members, scenes_of_trace, trace_name

LAUNCH, AROUND = 15.0, 8.0  # seconds of a launch's start, and of a recording beside what it records: guesses
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
    return max(starts, default=LAUNCH) + _seconds(launch)


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
    if lacking := [family for family in tracing.events if family not in families]:
        yield f"  not recorded here: {', '.join(lacking)} ({'; '.join(why)})"
    if steps := profiled_steps(launch):
        yield f"  {launch.cohort.lead.workload}: {counted(steps, 'step')} of each recording profiled by its framework"
    yield f"  about {duration(recording_seconds([launch], folder))}"
    if families:
        most, free = most_bytes(launch), room_for(folder.trace(trace_name(launch)))
        yield f"  up to {size(most)} of recordings on disk until they are read; {size(free)} are free"


def _seconds(launch: Launch) -> float:
    tracing = launch.design.tracing
    if tracing is None:
        return 0.0
    return tracing.rounds * len(scenes_of_trace(launch.cohort)) * (tracing.seconds + AROUND)
