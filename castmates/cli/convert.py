"""The command `castmates trace convert`: a trace, ours or of another program, in another format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import command
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.timeline.converting import Source
    from castmates.timeline.model import Timeline

FORMATS = ("perfetto", "chrome", "ctf", "tables")
STUDY_SUFFIXES = (".yaml", ".yml")
SHOWN = 8  # kinds in a line


@command(
    "trace convert",
    "castmates trace convert trace.strace",
    "castmates trace convert lttng-traces/session --format tables",
    order=6,
)
def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file or folder of strace, ftrace, trace-cmd, perf script, LTTng, TensorBoard or Chrome's JSON; a "
            "trace's own folder; or a study, before MIX.",
        ),
    ],
    mix: Annotated[
        str,
        typer.Argument(
            metavar="MIX",
            help="The mix whose trace it is, if SOURCE is a study, or words that only one trace has; "
            "MIX@PARTITION under a partition.",
            show_default=False,
        ),
    ] = "",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="perfetto, chrome, ctf (for Trace Compass) or tables.")
    ] = "perfetto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write, or for ctf and tables the folder. Beside SOURCE, "
            "and in the current folder for a trace of a study.",
        ),
    ] = None,
    span: Annotated[
        str,
        typer.Option("--span", metavar="FROM:TO", help="Only this part: seconds from the beginning, such as 1.5:3."),
    ] = "",
) -> None:
    """Convert a trace, ours or of another program, into another format.

    For Perfetto, Chrome or Trace Compass, or into tables that can be queried.

    What SOURCE is is recognised by its content. What could not be used of it is listed by name, with its number.
    """
    from castmates.timeline import converting
    from castmates.timeline.model import span_of

    if form not in FORMATS:
        raise CastmatesError(f"--format is '{form}', expected one of {', '.join(FORMATS)}.")
    asked = span_of(span) if span else None
    found = converting.source_of(_path(source, mix))
    place = output or converting.output_of(found, form)
    converting.may_write(place, form, found)
    timeline = _read(found)
    _show_read(found, timeline)
    written = converting.convert(timeline, form, place, asked)
    part = f" ({converting.words(written)} of it)" if asked else ""
    typer.echo(f"{place}: written as {form}{part}")
    if form == "perfetto":
        typer.echo("Open it on ui.perfetto.dev.")


def _path(source: str, mix: str) -> Path:
    """The file or folder that is meant."""
    from castmates.results.find import find_traces
    from castmates.results.folder import StudyFolder
    from castmates.results.traces import trace_folder, traces_there

    path = Path(source)
    if mix:
        return trace_folder(find_traces(path)[0], mix)
    own = StudyFolder(path)
    if path.suffix in STUDY_SUFFIXES or own.plan_file.is_file() or traces_there(own):
        there = traces_there(find_traces(path)[0])
        known = f"it has {', '.join(there)}" if there else "it has none; `castmates trace record` makes one"
        raise CastmatesError(f"{path}: this is a study; give the mix of the trace after it ({known}).")
    return path


def _read(source: "Source") -> "Timeline":
    """Read a source, with a bar in a terminal where it is long."""
    from castmates.cli.screen import console

    where = console()
    if not where.is_terminal:
        return source.read()
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=where, transient=True) as bar:
        task = bar.add_task(f"reading {source.path.name}", total=source.size)
        return source.read(lambda done: bar.advance(task, done))


def _show_read(source: "Source", timeline: "Timeline") -> None:
    """What was read: how much of what, what is lost and left out, and over which time."""
    from castmates.english import counted
    from castmates.timeline.converting import counts, words

    kinds = [f"{count:,} {kind}" for kind, count in counts(timeline).items()]
    more = f", {counted(len(kinds) - SHOWN, 'more kind')}" if len(kinds) > SHOWN else ""
    typer.echo(f"{source.path}: {source.title}, {words(timeline)}: {', '.join(kinds[:SHOWN])}{more}")
    for each in timeline.about.get("sources", []):
        if source.importer is None:
            continue
        left = sorted(each["left_out"].items(), key=lambda one: -one[1])
        used = each["read"] - sum(each["left_out"].values())
        typer.echo(f"  {each['read']:,} events read, {used:,} used, on the clock: {each['clock']}")
        for name, count in left:
            typer.echo(f"  left out: {count:,} {name}")
        if each["lost"]:
            typer.echo(f"  lost by the recorder: {each['lost']:,}")
    for sentence in timeline.about.get("missing", ()):
        typer.echo(f"  {sentence}")
