"""The record of a trial as a table."""

from typing import TYPE_CHECKING, Any

from castmates.machine.trial_records import Record

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
