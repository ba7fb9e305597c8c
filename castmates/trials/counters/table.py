"""The record of a trial as a table."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import castmates
from castmates.errors import CastmatesError
from castmates.inside import papi
from castmates.linux.host import memory_bytes
from castmates.machine import trial_records
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here
from castmates.machine.topology import read_topology
from castmates.machine.trial_records import Record
from castmates.protocols import Say
from castmates.trials.counters import methods
from castmates.trials.counters.program import (
    MIB,
    CannotHere,
    Judged,
    Trial,
    combined,
    judge,
    quiet_cpu,
    too_large,
    trials,
)
from castmates.workloads import environments

if TYPE_CHECKING:
    from rich.console import Group


STYLES = {"verified": "green", "wrong": "red", "not checked": "yellow"}


def as_table(record: Record) -> "Group":
    """Return what was counted, why the rest was not, what is wrong, and how many events can be believed."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("event", no_wrap=True)
    table.add_column("task", overflow="fold", min_width=10)
    has_papi = any(row.get("papi") is not None for row in record["trials"])
    keys = ["expected", "measured", "account", "perf_stat", *(["papi"] if has_papi else [])]
    for column in ("known", "measured", "kernel", "perf", "PAPI")[: len(keys)]:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in record["trials"]:
        if row["measured"] is not None:
            numbers = [_number(row[key]) for key in keys]
            verdict = Text(row["verdict"], style=STYLES[row["verdict"]])
            table.add_row(Text(row["event"]), Text(row["task"]), *numbers, verdict)
    notes = [Text(line, style=style) for line, style in _notes(record)]
    return Group(table, *notes, Text(summary(record)))


def summary(record: Record) -> str:
    """Return how many events can be believed here."""
    verdicts = list(record["events"].values())
    counts = (
        f"{verdicts.count('verified')} of {len(verdicts)} events are verified here, {verdicts.count('wrong')} are wrong"
    )
    emulated = "" if record["platform"] == "measured" else f" This machine is {record['platform']}."
    rest = f"{verdicts.count('not checked')} could not be checked"
    legend = "Numbers are for each unit of the task; `kernel` is its own account, `perf` is perf stat."
    return f"{counts}, {rest}. {_of_papi(record)}{legend}{emulated}"


def _of_papi(record: Record) -> str:
    """Return what PAPI is worth here; nothing where it is not here."""
    verdicts = list(record.get("papi", {}).get("events", {}).values())
    if not verdicts:
        return ""
    return f"By PAPI {verdicts.count('verified')} of {len(verdicts)} are verified, {verdicts.count('wrong')} wrong. "


def _notes(record: Record) -> list[tuple[str, str]]:
    """Return what is wrong, line by line; what was not checked, reason by reason."""
    notes = [
        (f"wrong: {row['event']}, {row['task']}: {row['why']} ({row['band']})", STYLES["wrong"])
        for row in record["trials"]
        if row["verdict"] == "wrong"
    ]
    notes += [
        (f"wrong by PAPI: {row['event']}, {row['task']}: {row['papi_why']} ({row['band']})", STYLES["wrong"])
        for row in record["trials"]
        if row.get("papi_verdict") == "wrong"
    ]
    notes += [
        (f"{row['event']}, {row['task']}: {row['why']}", "")
        for row in record["trials"]
        if row["verdict"] == "verified" and row["why"]
    ]
    reasons: dict[str, dict[str, None]] = {}
    for row in record["trials"]:
        if row["verdict"] == "not checked":
            what = row["event"] if row["measured"] is None else f"{row['event']} ({row['task']})"
            reasons.setdefault(row["why"], {})[what] = None
    return notes + [(f"not checked: {', '.join(events)}: {why}", "") for why, events in reasons.items()]


def _number(value: Any) -> str:  # noqa: ANN401 (what JSON has)
    return "" if value is None else f"{value:.5g}"


# `castmates doctor --verify-counters`: tries whether counters are right on this machine, and keeps a record.

WHAT = "castmates doctor --verify-counters"
FREE_CPU = ("migrate", "crew-touch", "crew-spin")  # tasks that use several CPUs
LARGE = 64 * MIB


class Outcome(NamedTuple):
    """A task that was tried: judged with our own method and perf stat's together, by perf stat alone, and by PAPI."""

    trial: Trial
    judged: Judged
    perf_stat: Judged | None = None
    papi: Judged | None = None


def verify(envs: Path, cache: Path, say: Say) -> trial_records.Record:
    """Try every event, keep the record, and return it."""
    program = environments.build(environments.NATIVE, envs, cache) / "bin" / "known"
    cache.mkdir(parents=True, exist_ok=True)
    with machine_lock(WHAT, wait=False):
        outcomes = list(try_all(program, cache, trials(read_topology(), page_bytes()), memory_bytes("MemAvailable")))
    record = record_of(outcomes)
    file = trial_records.COUNTERS.write(cache, record)
    say(f"Recorded in {file}.")
    return record


def try_all(
    program: Path, directory: Path, wanted: Iterator[Trial] | Sequence[Trial], available: int | None = None
) -> Iterator[Outcome]:
    """Try one after the other; whether an event can be counted at all is asked once."""
    refused: dict[str, str] = {}
    for trial in wanted:
        if trial.event not in refused:
            refused[trial.event] = methods.why_not_countable(trial.event, [quiet_cpu()])
        why = refused[trial.event] or too_large(trial, available)
        yield Outcome(trial, Judged("not checked", why=why)) if why else try_one(trial, program, directory)


def try_one(
    trial: Trial, program: Path, directory: Path, engine: methods.Engine = methods.own_engine, perf_stat: bool = True
) -> Outcome:
    """Count a task with the project's counters and by perf stat, and judge both."""
    cpu = None if trial.task in FREE_CPU else quiet_cpu()
    try:
        ours = judge(trial, *methods.by_engine(trial, program, directory, cpu, engine))
        longer, second = trial.for_perf_stat, None
        # Not a clock, as starts take more time or less; not a large set, which each start makes anew; not by
        # group.
        if perf_stat and (trial.account != "CPU time" and trial.bytes <= LARGE and trial.scope == "thread"):
            second = methods.by_perf_stat(longer, program, directory, cpu)
    except CannotHere as why:
        return Outcome(trial, Judged("not checked", why=str(why)))
    theirs = judge(longer, *second) if second else None
    has_papi = methods.suits(trial) and not papi.why_not()
    third = methods.try_by_papi(trial, program, directory, cpu) if has_papi else None
    return Outcome(trial, combined(ours, theirs), theirs, third)


def record_of(outcomes: Sequence[Outcome]) -> trial_records.Record:
    """Return the result of each trial, and what they come to for each event."""
    return {
        "identity": trial_records.COUNTERS.identity(),
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "castmates": castmates.__version__,
        "platform": platform_here(),
        "events": {
            event: _of_event(event, outcomes) for event in dict.fromkeys(outcome.trial.event for outcome in outcomes)
        },
        "papi": methods.summary([(one.trial, one.papi) for one in outcomes if one.papi is not None]),
        "trials": [_row(outcome) for outcome in outcomes],
    }


def wrong(record: trial_records.Record) -> list[str]:
    """Return the events whose counts are wrong, by PAPI too."""
    events = [event for event, verdict in record["events"].items() if verdict == "wrong"]
    of_papi = record.get("papi", {}).get("events", {})
    return events + [f"{event} (by PAPI)" for event, verdict in of_papi.items() if verdict == "wrong"]


def page_bytes() -> int:
    """Return the size of a page here."""
    return os.sysconf("SC_PAGESIZE")


def _of_event(event: str, outcomes: Sequence[Outcome]) -> str:
    """Return the verdict on an event. Zeros alone verify nothing: at least one task must have made it count."""
    own = [(one.trial, one.judged) for one in outcomes if one.trial.event == event]
    if any(judged.verdict == "wrong" for _, judged in own):
        return "wrong"
    counted = any(judged.verdict == "verified" and trial.per_unit > 0 for trial, judged in own)
    return "verified" if counted else "not checked"


def _row(outcome: Outcome) -> dict[str, Any]:
    trial, judged, theirs, third = outcome
    return {
        "event": trial.event,
        "task": trial.what,
        "expected": trial.per_unit,
        "low": trial.low,
        "high": trial.high,
        "measured": judged.measured,
        "account": judged.account,
        "account_of": trial.account,
        "perf_stat": theirs.measured if theirs else None,
        "papi": third.measured if third else None,
        "papi_verdict": third.verdict if third else None,
        "papi_why": third.why if third else "",
        "verdict": judged.verdict,
        "why": judged.why,
        "band": trial.why,
    }


def raise_if_wrong(record: trial_records.Record) -> None:
    """End with an error where a count is wrong."""
    if events := wrong(record):
        raise CastmatesError(
            f"wrong counts: {', '.join(events)}; do not trust them on this machine. Is another program counting, or is "
            "the processor emulated? `perf list` shows what an event is here."
        )
