"""What a study traces beside what it measures, in words."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from castmates.english import counted, duration, listed
from castmates.results.folder import StudyFolder
from castmates.results.profiles import missing_profiles, records_there
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
