"""Writes what a launch leaves: tables first, `launch.json` last, so that a launch is there whole or not at all."""

import math
import platform
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from castmates import __version__, plugins
from castmates.errors import CastmatesError
from castmates.files import reason, replace, replace_text, sha256_of
from castmates.linux.owner import boot_id, born_of
from castmates.machine.facts import cpu_model
from castmates.machine.probes import our_git_state
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import (
    COUNTERS,
    LAUNCH_TABLES,
    LAYERS,
    RECORD,
    SAMPLES,
    SLICES,
    STEPS,
    TOPDOWN,
    WINDOWS,
    record_text,
    table_file,
)
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.ranges import RANGE_TABLES, RANGES
from castmates.runner.outcome import Measured, Outcome
from castmates.runner.processes.launch import Running
from castmates.runner.rounds import lead_in, stage
from castmates.runner.rounds.hardware import SCHEMATA, number_of_ways
from castmates.runner.rounds.ledger import summary
from castmates.runner.rounds.phases import Joined, join, range_rows, ranges_are_kept
from castmates.runner.rounds.window import Services
from castmates.study.curves import scenes_measured
from castmates.study.reasons import reason_columns
from castmates.study.rehearsing import PLATFORM
from castmates.workloads import identity

# As castmates.files names them.
FILES = [RECORD, *map(table_file, [*LAUNCH_TABLES, *RANGE_TABLES])]
TEMPORARY = re.compile(rf"\.(?:{'|'.join(map(re.escape, FILES))})\.(\d+)(?:@(.*))?")


def write(outcome: Measured, folder: Path) -> None:
    """Write the launch's files into `folder`."""
    try:
        _write(outcome, folder)
    except OSError as problem:
        raise CastmatesError(
            f"launch {outcome.launch.path} is measured, but {folder} cannot be written ({reason(problem)}): make room "
            "or give write access there, and run the same command again."
        ) from None


def _write(outcome: Measured, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)  # a record never stands beside another launch's tables
    _remove_leftovers(folder)
    _parquet(list(_windows(outcome)), WINDOWS, folder / table_file("windows"))
    _parquet(list(_slices(outcome)), SLICES, folder / table_file("slices"))
    phases = join(outcome.cast, outcome.windows)
    steps = {**STEPS, **phases.columns}
    _parquet(list(_steps(outcome, phases)), steps, folder / table_file("steps"))
    _parquet(list(_samples(outcome)), SAMPLES, folder / table_file("samples"))
    _parquet(list(_counts(outcome, "event", phases)), COUNTERS, folder / table_file("counters"))
    _parquet(list(_counts(outcome, "metric", phases)), TOPDOWN, folder / table_file("topdown"))
    _parquet([_key(outcome) | layer for layer in outcome.layers], LAYERS, folder / table_file("layers"))
    _write_ranges(outcome, folder / table_file("ranges"))
    tables = {name: sha256_of(folder / name) for name in FILES if name != RECORD and (folder / name).is_file()}
    replace_text(folder / RECORD, record_text(_about(outcome), tables))


def _write_ranges(outcome: Measured, file: Path) -> None:
    """Write what members annotated, one by one, where that is kept; nothing is left of another launch's."""
    if ranges_are_kept(outcome.cast):
        rows = range_rows(outcome.cast, outcome.windows)
        _parquet([_key(outcome) | row for row in rows], RANGES, file)
    else:
        file.unlink(missing_ok=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of a process that was killed while it wrote here.

    Those of another node too: the launch is ours now, and a writer that was given up there fails without its file.
    """
    for file in folder.glob(".*.*.*"):
        if (named := TEMPORARY.fullmatch(file.name)) and not _is_written(int(named[1]), named[2]):
            file.unlink(missing_ok=True)


def _is_written(pid: int, node: str | None) -> bool:
    return node in (None, platform.node()) and born_of(pid) is not None


def _windows(outcome: Measured) -> Iterator[dict[str, Any]]:
    is_measured = outcome.launch.design.model is None
    node = {
        # A model is the same wherever and whenever it is played.
        "host": platform.node() if is_measured else "",
        "started": outcome.started.timestamp() if is_measured else math.nan,
        "processor": processor_of(outcome) or "",
        "machine": outcome.launch.cohort.machine,
    }
    members, services = {member.name: member for member in outcome.launch.cohort.members}, Services.of(outcome.cast)
    for number, window in enumerate(outcome.windows, start=1):
        schemata = {sample.subject: sample.note for sample in window.watched.samples if sample.metric == SCHEMATA}
        for name in window.scene.active:
            member, total, reasons = members[name], window.total(name), window.reasons_of(name)
            every = window.all_slices_of(name)
            yield (
                _key(outcome)
                | node
                | {
                    "round": window.round,
                    "position": window.position,
                    "window": number,
                    "scene": window.scene.name,
                    "kind": window.scene.kind,
                    "mix": window.scene.mix,
                    "partition": window.scene.partition,
                    "member": name,
                    "workload": member.workload,
                    "role": member.role,
                    "unit": member.unit,
                    "open_ns": min(each.open_ns for each in every),
                    "close_ns": max(each.close_ns for each in every),
                    "first_ns": total.first_ns,
                    "last_ns": total.last_ns,
                    "beats": total.beats,
                    "units": total.units,
                    "rate": total.rate,
                    "valid": not reasons,
                    **reason_columns(reasons),
                    "switch_ns": min(each.switch_ns for each in every),
                    "schemata": schemata.get(name, ""),
                    "ways": number_of_ways(schemata.get(name, "")),
                    "slices": len(every),
                    "slices_rejected": sum(bool(each.reasons) for each in every),
                    "slices_dropped": sum(each.dropped for each in every),
                    "open_s": total.open_s,
                    "progress_s": total.seconds,
                    **window.on_cpus(name),
                    "later": window.later(name),
                    "lead_in_passes": window.lead_in.passes,
                    "not_steady": window.lead_in.not_steady,
                }
                | services.of_window(window, name)
            )


def _slices(outcome: Measured) -> Iterator[dict[str, Any]]:
    members, services = {member.name: member for member in outcome.launch.cohort.members}, Services.of(outcome.cast)
    numbered = [(number, window) for number, window in enumerate(outcome.windows, start=1)]
    every = [(each, number, window) for number, window in numbered for each in window.all_slices]
    for each, number, window in sorted(every, key=lambda row: row[0].number):
        for name in window.scene.active:
            progress = each.progress(name)
            records = progress.records
            row = {
                "round": window.round,
                "stretch": each.stretch,
                "cycle": each.cycle,
                "slice": each.number,
                "window": number,
                "scene": window.scene.name,
                "kind": window.scene.kind,
                "member": name,
                "role": members[name].role,
                "switch_ns": each.switch_ns,
                "open_ns": each.open_ns,
                "close_ns": each.close_ns,
                "first_ns": records[0][0] if records else None,
                "last_ns": records[-1][0] if records else None,
                "beats": len(records),
                "units": progress.units,
                "rate": progress.rate,
                "watched": each.watched,
                "counted": not window.reasons and any(each is own for own in window.slices_of(name)),
                **reason_columns(each.reasons),
                "length_s": each.length_s,
                "steady_s": (each.begin_ns(name) - each.switch_ns) / 1e9,
            }
            yield _key(outcome) | row | services.of_slice(each, name)


def _steps(outcome: Measured, phases: Joined) -> Iterator[dict[str, Any]]:
    key = _key(outcome)
    for number, window in enumerate(outcome.windows, start=1):
        for name in window.scene.active:
            beats = [(each, beat) for each in window.slices_of(name) for beat in each.progress(name).records]
            spent = phases.steps.get((number, name)) or [{}] * len(beats)
            for (each, (t_ns, units)), phase in zip(beats, spent, strict=True):
                row = {"window": number, "member": name, "t_ns": t_ns, "units": units, "slice": each.number}
                yield key | row | phase


def _samples(outcome: Measured) -> Iterator[dict[str, Any]]:
    for number, window in enumerate(outcome.windows, start=1):
        for sample in window.samples():
            yield _key(outcome) | {
                "window": number,
                "t_ns": sample.t_ns,
                "source": sample.source,
                "subject": sample.subject,
                "metric": sample.metric,
                "value": float("nan") if sample.value is None else sample.value,
                "note": sample.note,
            }


def _counts(outcome: Measured, kind: str, phases: Joined) -> Iterator[dict[str, Any]]:
    """Yield what was counted, as rows of `counters` or of `topdown`."""
    for number, window in enumerate(outcome.windows, start=1):
        for count in (*window.counts(), *phases.counts.get(number, ())):
            if count.kind == kind:
                named = {"event": count.name, "set": count.group} if kind == "event" else {"metric": count.name}
                yield (
                    _key(outcome)
                    | named
                    | {
                        "window": number,
                        "round": window.round,
                        "scene": window.scene.name,
                        "member": count.subject,
                        "level": count.level,
                        "value": float("nan") if count.value is None else count.value,
                        "status": count.status,
                        "running": float("nan") if count.running is None else count.running,
                        "scope": count.scope,
                        "source": count.source,
                        "phase": count.phase,
                        "note": count.note,
                        "seconds": float("nan") if count.seconds is None else count.seconds,
                    }
                )


def _key(outcome: Measured) -> dict[str, Any]:
    launch = outcome.launch
    return {
        "study": launch.study,
        "cohort": launch.cohort.id,
        "launch": launch.number,
        "platform": outcome.platform,
    }


def _about(outcome: Measured) -> dict[str, Any]:
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "spec": outcome.launch.model_dump(mode="json"),
        "started": outcome.started.isoformat(timespec="seconds"),
        "host": platform.node(),
        "cpu_model": processor_of(outcome),
        "boot_id": boot_id(),
        "seconds": {
            "launch": outcome.launch_seconds and round(outcome.launch_seconds, 3),
            "warm_up": round(outcome.warm_up_seconds, 3),
            "measure": round(outcome.measure_seconds, 3),
            "total": round(outcome.total_seconds, 3),
        },
        "rounds": outcome.rounds,
        "settle": outcome.settling and outcome.settling.about(),
        "pace": outcome.pace and outcome.pace.about() | {"rounds": _paces(outcome)},
        "windows": len(outcome.windows),
        "windows_rejected": sum(bool(window.reasons) for window in outcome.windows),
        "ledger": summary(outcome.windows),
        "freezer": outcome.freezer,
        "runner_cpus": outcome.runner_cpus,
        "left_behind": outcome.left_behind,
        "afterwards": outcome.afterwards,
        "without_verdict": outcome.without_verdict,
        "prepared": outcome.prepared,
        "hardware": outcome.hardware,
        "reading": outcome.reading,
        "eviction": stage.reached(outcome.emptied) | lead_in.reached(outcome.led_in),
        "environments": outcome.environments,
        "inputs": outcome.inputs,
        "costs": outcome.costs,
        "versions": versions(),
        "platform": outcome.platform,
        "members": {process.name: member_record(process) for process in outcome.cast},
    } | {name: facts for name, facts in _sometimes(outcome).items() if facts}


def _sometimes(outcome: Measured) -> dict[str, Any]:
    """What only some records have; `scenes` are those that were measured, where looks left some out."""
    launch = outcome.launch
    scenes = [scene.name for scene in scenes_measured(launch)] if launch.skipped else []
    return {"truth": outcome.truth, "processor": outcome.processor, "scenes": scenes}


def processor_of(outcome: Outcome) -> str | None:
    """Return the model of the processor that measured; a modelled machine has none."""
    return cpu_model(Path("/")) if outcome.platform in ("measured", PLATFORM) else None


def _paces(outcome: Measured) -> list[dict[str, Any]]:
    """The length of slices and the settle time that every round was measured with."""
    return [
        {"round": number, "slice": round(pace.length_s, 4), "settle": round(pace.settle_s, 4), "cycles": pace.cycles}
        for number, pace in outcome.paces.items()
    ]


def member_record(process: Running) -> dict[str, Any]:
    """What a record has of a process."""
    return {
        "pid": process.pid,
        "cpus": list(process.start.cpus),
        "command": process.start.command,
        "program": _program(process),
        "package": process.start.package and {process.start.package: identity.package_version(process.start.package)},
        "environment": process.start.environment,
        "ready_seconds": process.ready_seconds and round(process.ready_seconds, 3),
        "pages": process.pages,
        "last_lines": process.last_lines(),
        **_kept_alive(process),
        **({"phases": process.phases.about()} if process.phases else {}),
        **({"requests": process.requests.about()} if process.requests else {}),
        **({"frozen_between_steps": process.between_steps.about()} if process.between_steps else {}),
    }


def _kept_alive(process: Running) -> dict[str, object]:
    """Return how often a program that ends after its steps was started again, and what its whole runs made."""
    if process.restarts is None or not process.start.reports:
        return {}
    return {"kept_alive": process.restarts.about() | {"slices_again": process.spoilt}}


def _program(process: Running) -> str | None:
    """Return where the program that ran really lies; None where nothing was started."""
    command = process.start.kept_command or process.start.command
    return identity.origin(command, process.start.environment["PATH"]) if command else None


def versions() -> dict[str, str]:
    """What measured: versions of Castmates, of Python, of the kernel and of packages."""
    names = ("numpy", "pandas", "pyarrow", "pydantic", "snakemake")
    checkout = our_git_state()  # the version alone is the same for many commits
    return {
        "castmates": __version__,
        **({"commit": checkout["described"]} if checkout else {}),
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{name: version(name) for name in names},
        **plugins.versions(),
    }


def _parquet(rows: list[dict[str, Any]], columns: Columns, path: Path) -> None:
    replace(path, lambda temporary: write_rows(rows, columns, temporary))
