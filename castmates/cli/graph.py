"""The command `castmates trace graph`: the graph of a lead's step, as a picture or for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.arguments import Studied
from castmates.cli.command import command
from castmates.errors import CastmatesError


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
    from castmates.report.export.graph_study import COLOURS, graph_study
    from castmates.report.export.graph_svg import FORMATS, write_graph
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
