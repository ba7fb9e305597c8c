"""The command `castmates trace record`: everything that happens in a mix, on one clock."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from castmates.cli.arguments import StudyFile
from castmates.cli.command import RESULTS, Runner, command, family
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.project import Project
    from castmates.study.tracing_keys import TraceKeys

OPTIONS = {"partitions": "--partition", "members": "--members"}  # by the keys that they replace


family("trace", "Record everything in a mix on one clock; ask and draw it.", RESULTS, 4)


@command(
    "trace record",
    "castmates trace record study.yaml dlrm-train+stream",
    "castmates trace record study.yaml stream --seconds 2 --events scheduler,syscalls",
    order=1,
    kind=Runner,
)
def record_trace(
    study: StudyFile,
    mix: Annotated[
        str,
        typer.Argument(
            help="A mix of the study, such as dlrm-train+stream; words that only one mix has will do.", metavar="MIX"
        ),
    ],
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=60, metavar="S", help="Recorded in each scene; 5 if left out.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=20, metavar="N", help="Recordings of each scene; 1 if left out.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=0, max=1000, metavar="N", help="Steps of the lead that its framework profiles; 8, and 0 for none."
        ),
    ] = None,
    events: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="What perf records: scheduler,syscalls,faults,interrupts,stacks if left out; also latencies, of "
            "loads that PEBS, IBS or SPE sample (not tried on real hardware).",
        ),
    ] = "",
    members: Annotated[
        str, typer.Option(metavar="NAMES", help="Workloads whose processes perf records; all if left out.")
    ] = "",
    partition: Annotated[
        str, typer.Option(metavar="NAME", help="A partition of the study to trace the mix under.")
    ] = "",
    most: Annotated[
        str, typer.Option(metavar="SIZE", help="Largest file of recorded events, such as 500 MB; 2 GB if left out.")
    ] = "",
    keep: Annotated[
        str, typer.Option(metavar="SIZE", help="How much of the raw files is kept; 200 MB if left out.")
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Trace again, even if the trace is there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would be recorded; run nothing.")] = False,
) -> None:
    """Record everything that happens in a mix, alone and beside others.

    One launch, on one clock, apart from all that is measured: scheduler, system calls, page faults, interrupts and
    stacks of the members' processes (never of others), steps and operations of the lead's framework, heartbeats, cache,
    memory, GHz.

    What the study has under `trace` holds where an option is left out. A trace that is there is not made again.
    """
    from castmates.linux.tracing_rights import recordable, rights
    from castmates.project import load
    from castmates.report.text.traces import trace_report
    from castmates.results.traces import is_made, read_record
    from castmates.study.trace_launches import trace_name
    from castmates.terminal.preview.profiles import trace_lines

    given = {
        "seconds": seconds, "rounds": rounds, "steps": steps, "events": _names(events), "members": _names(members),
        "partitions": [partition] if partition else None, "most": most or None, "keep": keep or None,
    }  # fmt: skip
    project = _planned(load(study), mix, {key: value for key, value in given.items() if value is not None})
    plan = project.plan()
    launch = next((each for each in plan.traces if _is_wanted(each, partition)), None)
    if launch is None:
        raise CastmatesError(f"{study}: the mix '{mix}' has no launch here; `castmates plan {study}` shows why.")
    folder = project.results
    can, wanted = rights(), launch.design.tracing.events if launch.design.tracing else ()
    for line in trace_lines(launch, folder, recordable(wanted, can), can.reasons):
        typer.echo(line, err=not dry_run)
    if dry_run:
        return
    if not again and is_made(launch, folder):
        typer.echo("This trace is there already; --again makes it again.", err=True)
    else:
        from castmates.pipeline.trace_launch import trace_now

        trace_now(project, plan, launch)
    record = read_record(folder, trace_name(launch))
    for line in trace_report(record, folder.trace(trace_name(launch)), study):
        typer.echo(line)
    if record.get("status") != "measured":
        raise typer.Exit(1)


def _planned(project: "Project", mix: str, given: dict[str, Any]) -> "Project":
    """The project with the key `trace` as it was given."""
    from dataclasses import replace

    from castmates.study.trace_launches import chosen_mix, refuse_unknown_mixes
    from castmates.study.tracing_keys import TraceKeys

    if project.modelled:
        raise CastmatesError(f"{project.study_file}: its platform is modelled, so nothing runs that could be traced.")
    base = project.study.trace or TraceKeys()
    without = project.study.model_copy(update={"trace": None})
    mixes = replace(project, study=without).plan().mixes
    keys = _keys(base, {**given, "mixes": [chosen_mix(mix, mixes, str(project.study_file))]})
    study = project.study.model_copy(update={"trace": keys})
    named = {key: option for key, option in OPTIONS.items() if key in given}
    refuse_unknown_mixes(study, mixes, str(project.study_file), named=named)
    return replace(project, study=study)


def _keys(base: "TraceKeys", given: dict[str, Any]) -> "TraceKeys":
    from pydantic import ValidationError

    from castmates.study.tracing_keys import TraceKeys

    try:
        return TraceKeys.model_validate({**base.model_dump(), "partitions": [], **given})
    except ValidationError as problem:
        first = problem.errors()[0]
        option = str(first["loc"][0])
        why = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
        raise CastmatesError(f"--{option} is '{first['input']}': expected {why[:1].lower()}{why[1:]}.") from None


def _names(text: str) -> list[str] | None:
    return [name for each in text.split(",") if (name := each.strip())] or None


def _is_wanted(launch: Any, partition: str) -> bool:  # noqa: ANN401 (a launch, of a module that is slow to load)
    from castmates.study.spec import UNMANAGED
    from castmates.study.trace_launches import partition_of

    return partition_of(launch.cohort.mixes[0]) == (partition or UNMANAGED)
