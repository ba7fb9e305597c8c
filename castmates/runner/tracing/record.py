"""Writes what a trace launch leaves: the tables of one timeline, and its record last."""

import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from castmates.analysis.dataflow.path_states import TracedSteps
from castmates.english import by_reason
from castmates.errors import CastmatesError
from castmates.files import reason, replace, size_of
from castmates.linux.host import release
from castmates.linux.owner import boot_id
from castmates.linux.tracing_rights import FAMILIES, Rights, not_shown, rights
from castmates.protocols import Count, Sample
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import GROUPS, GROUPS_FILE
from castmates.runner.cleanup.warden import guarded
from castmates.runner.record import member_record, processor_of, versions
from castmates.runner.tracing import paths
from castmates.runner.tracing.assemble import NUMBERS, Assembly, together
from castmates.runner.tracing.paths import rates
from castmates.runner.tracing.programs import PROFILE, Source
from castmates.runner.tracing.recorded import Recorded, Traced
from castmates.runner.tracing.recorders import NO_GHZ, PERF
from castmates.runner.tracing.rounds import RAW, tracing_of
from castmates.runner.tracing.stacks import map_of, remove_maps
from castmates.study.profile_launches import WHO_CAN, traced_by
from castmates.study.spec import SAMPLED
from castmates.study.trace_launches import identity_of, partition_of, recorded_members, trace_name
from castmates.timeline import tables
from castmates.timeline.converting import write_all
from castmates.timeline.flames.files import write_beside
from castmates.timeline.model import Timeline

FORMAT = 1
Facts = dict[str, Any]
Lacks = dict[str, Sequence[str]]  # sentences, and the sources that each is about


def write(outcome: Traced, folder: Path) -> None:
    """Put the timeline together and write the launch's files into `folder`.

    Stacks are read with the maps that members left for perf, which go at the end, and also if this process is killed.
    """
    pids = {*outcome.pids, *(process.pid for process in outcome.cast)}
    with guarded() as warden:
        for pid in pids:
            warden.guard_orphan(map_of(pid))
        try:
            _write(outcome, folder)
        finally:
            remove_maps(pids)


def _write(outcome: Traced, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = _Kept(folder / RAW, tracing_of(outcome.launch).keep)
        assembly = Assembly(outcome, kept.consider)
        kept.end()
        assembly.making.about = _about(outcome, assembly, folder)
        timeline = assembly.making.made()
        tables.write_tables(timeline, folder)
        timeline.about.update(paths.write(outcome, assembly.traced, timeline, folder))
        _write_groups(assembly.traced, folder)
        timeline.about["missing"] |= _export(timeline, folder, outcome)
        tables.write_record(timeline, folder)  # last: it shows that all is there
    except OSError as problem:
        raise CastmatesError(
            f"trace launch {folder.name} is over, but {folder} cannot be written ({reason(problem)}): make room or "
            "give write access there, and run the same command again."
        ) from None


def _write_groups(traced: Sequence[TracedSteps], folder: Path) -> None:
    """Write of which group each operation of the lead is; of none where calls by its name are of several."""
    (folder / GROUPS_FILE).unlink(missing_ok=True)
    columns = ["operation", "type", "layer_kind", "direction"]
    found: dict[tuple[str, str], set[str]] = {}
    for name, type_, kind, direction in {row for each in traced for row in each.calls[columns].itertuples(index=False)}:
        group = f"{kind}, gradient" if direction == "backward" else kind
        found.setdefault((name or type_, type_), set()).add(group)
    rows = [
        {"operation": name, "type": type_, "group": "".join(groups) if len(groups) == 1 else ""}
        for (name, type_), groups in sorted(found.items())
    ]
    if rows:
        replace(folder / GROUPS_FILE, partial(write_rows, rows, GROUPS))


def _export(timeline: Timeline, folder: Path, outcome: Traced) -> Lacks:
    """Write the files by which the trace is opened; a sentence where that fails, because the tables are the trace."""
    try:
        write_all(timeline, folder)
        _draw(timeline, folder, outcome)
    except Exception as problem:  # whatever it is, the launch took minutes and its tables are written
        why = reason(problem) if isinstance(problem, OSError) else str(problem) or type(problem).__name__
        words = (
            f"Files beside the tables could not be written ({why.rstrip('.')}): `castmates trace convert` writes the "
            "one for Perfetto later, and `castmates trace flame` the flame graph."
        )
        return {words: ["files"]}
    return {}


def _draw(timeline: Timeline, folder: Path, outcome: Traced) -> None:
    """Draw where the lead spends more CPU time beside others, if stacks were sampled."""
    if outcome.status == "measured":
        write_beside(timeline, folder, outcome.launch.study, trace_name(outcome.launch))


class _Kept:
    """The raw files that are kept as long as they fit; all others are removed, one recording after the other."""

    def __init__(self, raw: Path, most: int) -> None:
        self._raw, self._left = raw, most

    def consider(self, recorded: Recorded) -> None:
        """Keep the files of a recording that was read, or remove them."""
        folder = self._raw / recorded.scene.name / str(recorded.round)
        size = size_of(folder)
        if size <= self._left:
            self._left -= size
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> None:
        """Remove folders in which nothing is left."""
        for folder in sorted((each for each in self._raw.rglob("*") if each.is_dir()), reverse=True):
            with suppress(OSError):
                folder.rmdir()
        with suppress(OSError):
            self._raw.rmdir()


def _about(outcome: Traced, assembly: Assembly, folder: Path) -> Facts:
    launch, tracing, can = outcome.launch, tracing_of(outcome.launch), rights()
    mix, members = launch.cohort.mixes[0], {member.name: member for member in launch.cohort.members}
    return {
        "format": FORMAT,
        "status": outcome.status,
        "reason": outcome.reason,
        "identity": identity_of(launch),
        "study": launch.study,
        "mix": mix.name,
        "partition": partition_of(mix),
        "cohort": launch.cohort.id,
        "lead": launch.cohort.lead.name,
        "members": {
            process.name: {"workload": members[process.name].workload, "unit": members[process.name].unit}
            | member_record(process)
            | (_threads(outcome) if process.name == launch.cohort.lead.name else {})
            for process in outcome.cast
            if process.name in members
        },
        "platform": outcome.platform,
        "started": outcome.started.isoformat(timespec="seconds"),
        "host": platform.node(),
        "cpu_model": processor_of(outcome),
        "boot_id": boot_id(),
        "kernel": release(),
        "scenes": [
            _scene(outcome, recorded, sources, folder)
            for recorded, sources in zip(outcome.recorded, assembly.by_scene, strict=True)
        ],
        "sources": together(assembly.by_scene, assembly.annotations),
        "clocks": [
            {
                "scene": recorded.scene.name,
                "round": recorded.round,
                "at": at,
                "steady_ns": steady,
                "real_ns": real,
                "bracket_ns": bracket,
            }
            for recorded in outcome.recorded
            for at, (steady, real, bracket) in recorded.clocks
        ],
        "filters": {
            "events": list(tracing.events),
            "members": recorded_members(launch),
            "seconds": tracing.seconds,
            "most": tracing.most,
        }
        | ({"counts": dict(tracing.counts)} if tracing.counts else {}),
        "rights": {"level": can.level, "perf": can.perf, "reasons": list(can.reasons)},
        "missing": missing(outcome, assembly.by_scene, can),
        "seconds": {
            "launch": outcome.launch_seconds and round(outcome.launch_seconds, 3),
            "warm_up": round(outcome.warm_up_seconds, 3),
            "trace": round(outcome.measure_seconds, 3),
            "total": round(outcome.total_seconds, 3),
        },
        "prepared": outcome.prepared,
        "hardware": outcome.hardware,
        "environments": outcome.environments,
        "inputs": outcome.inputs,
        "versions": versions(),
        "frameworks": next((each.profile.versions for each in outcome.recorded if each.profile), {}),
    }


def _threads(outcome: Traced) -> Facts:
    """How many threads the lead's framework has by its settings; nothing where it does not report them."""
    reported = [each.profile.threads for each in outcome.recorded if each.profile is not None]
    intra, inter = next((each for each in reported if any(each)), (0, 0))
    known = {name: count for name, count in (("intra", intra), ("inter", inter)) if count > 0}
    return {"threads": known} if known else {}


def _scene(outcome: Traced, recorded: Recorded, sources: Sequence[Source], folder: Path) -> Facts:
    """What the record has of one recording."""
    profile = next((source for source in sources if source.name == PROFILE), None)
    span = profile.more.get("span_ns") if profile else None
    found = rates(recorded, (span[0], span[1]) if span else None)
    lead = found.get(outcome.launch.cohort.lead.name, {})
    raw = folder / RAW / recorded.scene.name / str(recorded.round)
    return {
        "scene": recorded.scene.name,
        "kind": recorded.scene.kind,
        "partition": recorded.scene.partition,
        "round": recorded.round,
        "t0_ns": recorded.span[0],
        "t1_ns": recorded.span[1],
        "switch_ns": recorded.switch_ns,
        "end_ns": recorded.end_ns,
        "rate_on": lead.get("on"),
        "rate_off": lead.get("off"),
        "slower": lead.get("slower"),
        "rates": found,
        "reason": recorded.reason,
        "sources": [source.about() for source in sources],
        "readings": _readings(recorded.totals),
        "counts": {f"{one.subject} {one.name}": one.value for one in recorded.counts if one.value is not None},
        "kept": str(raw.relative_to(folder)) if raw.is_dir() else "",
        "commands": {name: list(events.command) for name, events in recorded.events.items() if events.command},
    }


def _readings(totals: Sequence[Sample]) -> Mapping[str, Mapping[str, float]]:
    """What collectors read at both edges of a recording, by what it is of."""
    found: dict[str, dict[str, float]] = {}
    for sample in totals:
        if sample.value is not None:
            found.setdefault(sample.subject, {})[sample.metric] = sample.value
    return found


def missing(outcome: Traced, by_scene: Sequence[Sequence[Source]], can: Rights) -> Lacks:
    """What the trace has not, each in a sentence with the reason, and what helps."""
    launch, wanted = outcome.launch, set(tracing_of(outcome.launch).events)
    found: Lacks = {}
    for source in (source for scene in by_scene for source in scene):
        if source.reason and source.reason != "; ".join(can.reasons):
            found[f"{source.name}: {source.reason}."] = FAMILIES if source.name == PERF else [source.name]
    if lacking := not_shown(wanted, can):
        found |= {f"Not recorded: {each.words}.": each.families for each in lacking}
        found |= {f"{reason[:1].upper()}{reason[1:]}.": [*FAMILIES, *SAMPLED] for reason in can.reasons}
    if tracing_of(launch).steps and traced_by(launch.cohort) is None:
        lead = launch.cohort.lead.workload
        found[f"Steps and operations of {lead}: it has no profiler that can be asked; {WHO_CAN}."] = [PROFILE]
    unfound = [source.more.get("threads not found") for scene in by_scene for source in scene if source.name == PROFILE]
    if any(unfound):
        many = max(filter(None, unfound))
        found[f"{many} threads of the profile could not be found among the system's."] = [PROFILE]
    for source in (source for scene in by_scene for source in scene):
        found |= source.more.get("missing", {})
    return found | {words: [NUMBERS] for words in _of_hardware(outcome)}


def not_counted(counts: Sequence[Count]) -> list[str]:
    """The events that have no count in any recording, with the reason."""
    known = {count.name for count in counts if count.value is not None}
    without = by_reason((count.name, count.note or count.status) for count in counts if count.name not in known)
    return [f"Counts of {names}: {reason.rstrip('.')}." for reason, names in without]


def _of_hardware(outcome: Traced) -> list[str]:
    """What the machine does not give."""
    samples = [sample for recorded in outcome.recorded for sample in recorded.samples]
    there = {sample.metric for sample in samples if sample.value is not None}
    found = []
    if outcome.recorded and not there & {"llc_occupancy", "mbm_total"}:
        why = outcome.hardware.get("monitor", {})
        reason = str(next(iter(why.values()), "not monitored")).rstrip(".")
        found.append(f"Cache occupancy and memory bandwidth: {reason}.")
    if outcome.recorded and not any(recorded.counts for recorded in outcome.recorded):
        found.append("Hardware counters: none was asked for (`counters.events` of the study).")
    found += not_counted([count for recorded in outcome.recorded for count in recorded.counts])
    if outcome.recorded and "cpu_ghz" not in there:
        found.append(f"{NO_GHZ[:1].upper()}{NO_GHZ[1:]}.")
    return found
