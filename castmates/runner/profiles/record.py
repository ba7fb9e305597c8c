"""Reads the traces of a profile launch, and writes what it leaves: tables first, its record last."""

import json
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from castmates.analysis.operations.instructions import FLAGS
from castmates.errors import CastmatesError
from castmates.files import reason, replace, replace_text, size_of
from castmates.linux.host import cpu_flags
from castmates.linux.owner import boot_id
from castmates.results.columns.contract import Columns
from castmates.results.columns.operations import (
    DEVICE_CALLS,
    MEMORY,
    OPERATION_WORK,
    PROFILE_RECORD,
    PROFILED_STEPS,
    TRACED_STAGES,
)
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.primitives import PRIMITIVES
from castmates.results.columns.ranges import OPERATION_RANGES, PROFILE_RANGES
from castmates.runner.profiles import graphs, tables
from castmates.runner.profiles.graphs import primitive_rows
from castmates.runner.profiles.rounds import TRACES, Profiled, Taken, profiling_of
from castmates.runner.record import member_record, processor_of, versions
from castmates.study.profile_launches import CACHED, FIRST, identity_of, is_logged, is_of_first_epoch
from castmates.traces.graphs import Log, read_log
from castmates.traces.reading import FILES, Found, read
from castmates.workloads.tfmodels.profile_page import LOG, Input

EPOCHS = {Input.FROM_STORAGE: FIRST, Input.ANEW: CACHED}


@dataclass(frozen=True)
class Read:
    """A trace and what is known of it."""

    taken: Taken
    found: Found | None = None  # None where there is none, or none that can be read
    log: Log | None = None  # of oneDNN; None where it was not wanted
    reason: str = ""
    bytes: int = 0


def write(outcome: Profiled, folder: Path) -> None:
    """Read the traces and write the launch's files into `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PROFILE_RECORD).unlink(missing_ok=True)  # a record never stands beside another launch's tables
        _write(outcome, folder)
    except OSError as problem:
        raise CastmatesError(
            f"profile launch {outcome.launch.path} is over, but {folder} cannot be written ({reason(problem)}): make "
            "room or give write access there, and run the same command again."
        ) from None


def _write(outcome: Profiled, folder: Path) -> None:
    about: list[dict[str, Any]] = []
    left, logged = LeftTables(outcome), is_logged(outcome.launch)

    def aligned_traces() -> Iterator[tables.Aligned]:
        """One trace at a time: together they need not fit into memory."""
        for taken in outcome.taken:
            one = _read(taken, logged)
            aligned = tables.Aligned.of(outcome, taken, one.found.trace) if one.found else None
            about.append(_about(one, aligned))
            if one.found is not None and aligned is not None:
                left.add(aligned, one.found)
                if one.log is not None:
                    about[-1]["log"] = _about_log(one.log, left.add_log(aligned, one.log))
                yield aligned

    replace(folder / "operations.parquet", partial(tables.write_operations, aligned_traces()))
    left.write(folder)
    graph = graphs.write(outcome, folder)
    _keep(folder / TRACES, about, profiling_of(outcome.launch).keep)
    _remove_others(folder / TRACES, about)
    replace_text(
        folder / PROFILE_RECORD, json.dumps(_record(outcome, about) | {"graph": graph}, indent=1, sort_keys=True) + "\n"
    )


def _read(taken: Taken, logged: bool) -> Read:
    if taken.folder is None or taken.reason:
        return Read(taken, reason=taken.reason)
    files = sorted(file for pattern in FILES for file in taken.folder.rglob(pattern))
    if not files:
        return Read(taken, reason="the profiler left no trace")
    size = size_of(taken.folder)
    try:
        found = read(files[-1])
        if not found.trace.works:
            return Read(taken, reason="its steps show no operations, as where XLA has compiled them", bytes=size)
        log = read_log(taken.folder / LOG) if logged else None
        return Read(taken, found, log, bytes=size)
    except CastmatesError as problem:
        return Read(taken, reason=str(problem), bytes=size)


def _about(read: Read, aligned: tables.Aligned | None) -> dict[str, Any]:
    """What the record has of a trace."""
    taken = read.taken
    about = {
        "scene": taken.scene.name,
        "round": taken.round,
        "reason": read.reason,
        "bytes": read.bytes,
        "kept": "",
        "write_seconds": round(taken.write_seconds, 3),
        "usual_ms": [_mean_ms(taken.before), _mean_ms(taken.after)],
    }
    if taken.input in EPOCHS:
        about |= {"epoch": EPOCHS[taken.input], "pair": taken.pair, "storage_bytes": taken.storage_bytes}
        about["taken"] = taken.folder is not None  # where there is a reason: it is not used, and another is alike
    if aligned is None:
        return about
    trace = aligned.trace
    whole = (trace.step_end_ps - trace.step_begin_ps).sum()
    return about | {
        "steps": trace.steps,
        "step_ms": round(float(whole) / 1e9 / trace.steps, 4),
        "threads": list(taken.threads),
        "calls": len(trace.calls.begin_ps),
        "unattributed_share": round(trace.unattributed_ps / float(whole), 4),
        "alignment_us": round(aligned.alignment_ns / 1e3, 3),
    }


def _about_log(log: Log, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the record has of oneDNN's log of a trace."""
    return {
        "executions": len(log.executions),
        "in_steps": len(rows),
        "joined": dict(Counter(row["joined_by"] or "none" for row in rows)),
        "other_lines": dict(log.other_lines),
    }


def _mean_ms(beats: Sequence[int]) -> float | None:
    return round((beats[-1] - beats[0]) / 1e6 / (len(beats) - 1), 4) if len(beats) > 1 else None


def _keep(traces: Path, about: Sequence[dict[str, Any]], most: int) -> None:
    """Choose the traces that are kept: as long as they fit, the first of each scene first."""
    left = most
    for one in sorted(about, key=lambda each: each["round"]):
        folder = traces / one["scene"] / str(one["round"])
        if one["bytes"] and one["bytes"] <= left:
            left -= one["bytes"]
            one["kept"] = str(folder.relative_to(traces.parent))


def _remove_others(traces: Path, about: Sequence[dict[str, Any]]) -> None:
    """Remove every trace that is not kept, those of scenes that were given up too."""
    kept = {traces.parent / one["kept"] for one in about if one["kept"]}
    for scene in traces.glob("*"):
        for folder in scene.glob("*"):
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)
        if not any(one.parent == scene for one in kept):
            shutil.rmtree(scene, ignore_errors=True)


def _record(outcome: Profiled, about: Sequence[dict[str, Any]]) -> dict[str, Any]:
    launch = outcome.launch
    kind: dict[str, Any] = {"first_epoch": True} if is_of_first_epoch(launch) else {}
    kind |= {"roofs": outcome.roofs} if outcome.roofs else {}
    return (
        kind
        | (_about_logging(outcome) if is_logged(launch) else {})
        | {
            "status": outcome.status,
            "reason": outcome.reason,
            "identity": identity_of(launch),
            "study": launch.study,
            "cohort": launch.cohort.id,
            "launch": launch.number,
            "lead": launch.cohort.lead.workload,
            "started": outcome.started.isoformat(timespec="seconds"),
            "host": platform.node(),
            "cpu_model": processor_of(outcome),
            "boot_id": boot_id(),
            "platform": outcome.platform,
            "seconds": {
                "launch": outcome.launch_seconds and round(outcome.launch_seconds, 3),
                "warm_up": round(outcome.warm_up_seconds, 3),
                "trace": round(outcome.measure_seconds, 3),
                "total": round(outcome.total_seconds, 3),
            },
            "slower": None if is_of_first_epoch(launch) else _slower(about),  # there it is not the tracing alone
            "traces": list(about),
            "prepared": outcome.prepared,
            "environments": outcome.environments,
            "inputs": outcome.inputs,
            "versions": versions(),
            "frameworks": next((taken.versions for taken in outcome.taken if taken.versions), {}),
            "members": {process.name: member_record(process) for process in outcome.cast},
        }
    )


def _about_logging(outcome: Profiled) -> dict[str, Any]:
    """What the record of a launch under oneDNN's log has beside; the lead's own output begins with oneDNN's version."""
    flags = cpu_flags()
    try:
        begun = read_log(outcome.cast[0].log) if outcome.cast else Log()
    except CastmatesError:  # cut, or removed
        begun = Log()
    return {
        "primitives": True,
        "flags": None if flags is None else sorted(FLAGS & set(flags)),  # that decide on extensions
        "onednn": {"version": begun.version, "instructions": begun.instructions},
    }


def _slower(about: Sequence[dict[str, Any]]) -> float | None:
    """How much longer a traced step takes than a usual one, as a ratio: the mean over traces."""
    ratios = [one["step_ms"] / mean(one["usual_ms"]) for one in about if one.get("step_ms") and all(one["usual_ms"])]
    return round(mean(ratios), 4) if ratios else None


# The tables that a profile launch leaves, but that of calls: rows are collected trace by trace, then written.

Rows = list[dict[str, Any]]
ALWAYS: dict[str, Columns] = {
    "profiled_steps": PROFILED_STEPS,
    "memory": MEMORY,
    "operation_work": OPERATION_WORK,
    "traced_stages": TRACED_STAGES,
    "device_calls": DEVICE_CALLS,
}
OF_RANGES: dict[str, Columns] = {"profile_ranges": PROFILE_RANGES, "operation_ranges": OPERATION_RANGES}
OF_LOGS: dict[str, Columns] = {"primitives": PRIMITIVES}


class LeftTables:
    """Rows by table."""

    def __init__(self, outcome: Profiled) -> None:
        self._log = tables.log_of(outcome)
        self._annotated = list(self._log.ranges()) if self._log else []
        self._logged = is_logged(outcome.launch)
        self._rows: dict[str, Rows] = {name: [] for name in ALWAYS | OF_RANGES | OF_LOGS}

    def add(self, aligned: tables.Aligned, found: Found) -> None:
        """Add what a trace shows."""
        self._extend("profiled_steps", tables.steps(aligned))
        self._extend("memory", tables.memory_rows(aligned, found.memory))
        self._extend("operation_work", tables.work_rows(aligned))
        self._extend("traced_stages", tables.stage_rows(aligned, found.stages))
        self._extend("device_calls", tables.device_rows(aligned, found.devices))
        self._extend("profile_ranges", tables.near(aligned, self._annotated))
        self._extend("operation_ranges", tables.joined(aligned, self._annotated))

    def add_log(self, aligned: tables.Aligned, log: Log) -> Rows:
        """Add what oneDNN logged during a trace, and return these rows."""
        rows = list(primitive_rows(aligned, log.executions))
        self._extend("primitives", rows)
        return rows

    def write(self, folder: Path) -> None:
        """Write each table; nothing is left of another launch's that this one has not."""
        if self._log is not None:
            self._rows["profile_ranges"] = tables.fitting(self._rows["profile_ranges"], self._log)
        there = ALWAYS | (OF_RANGES if self._log else {}) | (OF_LOGS if self._logged else {})
        for name, rows in self._rows.items():
            file = folder / f"{name}.parquet"
            if name not in there:
                file.unlink(missing_ok=True)
                continue
            writing: Callable[[Path], None] = partial(write_rows, rows, there[name])
            replace(file, writing)

    def _extend(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        self._rows[name].extend(rows)
