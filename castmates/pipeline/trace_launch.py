"""From a plan to the files of one trace, ending in good order however it is ended."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from castmates.english import size
from castmates.errors import CastmatesError
from castmates.files import cache_folder, reason
from castmates.linux.tracing_rights import FAMILIES, FAULTS, INTERRUPTS, SCHEDULER, SYSCALLS
from castmates.pipeline.estimates import write_trace_tables
from castmates.pipeline.measure_launch import measure
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.project import ENVIRONMENTS, Project
from castmates.results import traces
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.records import read_json
from castmates.results.traces import PATHS, room_for
from castmates.runner.staging import refuse_other_node
from castmates.runner.tracing.rounds import RAW
from castmates.study.plan_text import Task, task_for
from castmates.study.spec import LATENCIES, STACKS, Launch, Plan
from castmates.study.trace_launches import most_bytes, trace_name
from castmates.timeline.queries.asking import views
from castmates.timeline.queries.database import TraceFolder
from castmates.timeline.tables import read_about
from castmates.workloads import environments, inputs


def trace_launch(task: Task, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Record the scenes of a launch; the files are written into `folder`.

    A trace that lies there stays until the new one is whole, and where the launch fails or is killed.
    """
    refuse_full_disk(task.launch, folder)
    new = begin(folder)
    try:
        measure(task, new, cache, owner)
    except (SystemExit, KeyboardInterrupt):  # we were asked to end: no log is of any use
        remove(new)
        raise
    except BaseException:
        give_up(new)
        raise
    finish(new, folder)


def trace_now(project: Project, plan: Plan, launch: Launch) -> Path:
    """Make one trace without a sweep: prepare what its members need, and record; return its folder."""
    task = task_for(launch, plan)
    refuse_other_node(task.launch, task.machines)  # before minutes of building
    folder, cache = project.results.trace(trace_name(launch)), cache_folder()
    refuse_full_disk(launch, folder)  # before programs are built
    hold_sweep_lock(project.results)
    members = launch.cohort.members
    for name in sorted({environments.NATIVE, *(each.environment for each in members if each.environment)}):
        environments.build(name, ENVIRONMENTS, cache)
    for name in sorted({each.inputs for each in members if each.inputs}):
        inputs.build(name, ENVIRONMENTS, cache)
    trace_launch(task, folder, cache)
    write_trace_tables(project.results, project.results.tables)  # findings know it at once
    return folder


# Where a trace is made: beside the one of its name, whose place it takes once it is whole.

NEW, OLD = ".new", ".old"  # folders beside traces: what lies in one of them is listed nowhere


def refuse_full_disk(launch: Launch, folder: Path) -> None:
    """Refuse a launch whose raw files may not fit."""
    room, most = room_for(folder), most_bytes(launch)
    if room < most:
        raise CastmatesError(
            f"{folder}: recording this trace may take {size(most)} on disk, and {size(room)} are free: "
            "make room, or lower `trace.most` (--most) or `trace.rounds` (--rounds)."
        )


def begin(folder: Path) -> Path:
    """The empty folder in which the trace of `folder` is made again."""
    new, old = _beside(folder)
    try:
        if old.is_dir() and not folder.is_dir():  # a launch was killed between the two renames of `finish`
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
    except OSError as problem:
        raise CastmatesError(
            f"{new} cannot be made ({reason(problem)}): give write access there, and run the same command again."
        ) from None
    return new


def finish(new: Path, folder: Path) -> None:
    """Put the new trace in the place of the old one; one that failed takes no place of one that did not."""
    _, old = _beside(folder)
    record = read_json(new / TRACE_RECORD)
    if record.get("status") != "measured" and read_json(folder / TRACE_RECORD).get("status") == "measured":
        give_up(new)
        raise CastmatesError(
            f"the launch failed ({str(record.get('reason')).rstrip('.')}; its logs are in {new}); the trace that was "
            f"there before is kept: {folder}."
        )
    try:
        shutil.rmtree(old, ignore_errors=True)
        if folder.is_dir():
            old.parent.mkdir(exist_ok=True)
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as problem:
        raise CastmatesError(
            f"the new trace {new} cannot take the place of {folder} ({reason(problem)}): give write access there, and "
            "run the same command again."
        ) from None
    _remove_empty(new.parent, old.parent)


def give_up(new: Path) -> None:
    """Leave the logs of a launch that gave nothing, and nothing that is large."""
    shutil.rmtree(new / RAW, ignore_errors=True)
    (new / TRACE_RECORD).unlink(missing_ok=True)


def remove(new: Path) -> None:
    """Leave nothing of a launch that was ended."""
    shutil.rmtree(new, ignore_errors=True)
    _remove_empty(new.parent)


def _beside(folder: Path) -> tuple[Path, Path]:
    return folder.parent / NEW / folder.name, folder.parent / OLD / folder.name


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


# What a trace has not of what a query needs: the sentences of its record that are about that.

HEARTBEAT, PROFILE, ANNOTATIONS, NUMBERS = "heartbeat", "profile", "annotations", "numbers"
COUNTS = "counts"
OF_VIEWS: Mapping[str, frozenset[str]] = {  # views whose rows are of some sources alone
    "states": frozenset({SCHEDULER}),
    "wakeups": frozenset({SCHEDULER}),
    "migrations": frozenset({SCHEDULER}),
    "syscalls": frozenset({SYSCALLS}),
    "faults": frozenset({FAULTS}),
    "interrupts": frozenset({INTERRUPTS}),
    "losses": frozenset(FAMILIES),
    "heartbeats": frozenset({HEARTBEAT}),
    "steps": frozenset({HEARTBEAT, PROFILE}),
    "operations": frozenset({PROFILE}),
    "phases": frozenset({ANNOTATIONS}),
    "samples": frozenset({NUMBERS}),
    "counts": frozenset({COUNTS, FAULTS, PROFILE}),
    "stacks": frozenset({STACKS, LATENCIES}),
    "paths": frozenset({PATHS, PROFILE}),
}
OF_ALL = ("intervals", "instants")  # views of whatever there is
EVERYTHING = frozenset().union(*OF_VIEWS.values())
_USED = re.compile(r"(?:\bFROM|\bJOIN|,)[\s(]*(\w+)", re.IGNORECASE)


def lacking(trace: TraceFolder, sql: str) -> list[str]:
    """The sentences about what this query needs, and those that may be about anything."""
    needed = _needed(sql)
    return [words for words, about in traces.lacking(read_about(trace.path)).items() if not about or needed & {*about}]


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
