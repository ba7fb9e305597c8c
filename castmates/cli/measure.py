"""The command `castmates measure`: a program beside others, without a study file."""

from typing import Annotated

import typer

from castmates.cli.arguments import CATALOGUE, Cores, Launches, complete_workloads


def measure(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="Your program and its arguments, after --.")],
    beside: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Its neighbours, separated by commas.", autocompletion=complete_workloads),
    ] = "stream,chase",
    blocks: Launches = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the study; the program's if left out.")] = "",
    cores: Cores = "all",
    only_write: Annotated[bool, typer.Option("--only-write", help="Write the study file and measure nothing.")] = False,
) -> None:
    """Measure what a program loses beside others: it is run again and again, alone and beside each of them.

    The study that this writes into studies/ can be changed, planned and measured like any other.
    """
    from castmates.cli.show import print_result
    from castmates.pipeline import snakemake
    from castmates.pipeline.closing import refuse_nothing
    from castmates.pipeline.own_study import study_of
    from castmates.project import load, read_catalogue

    neighbours = [each.strip() for each in beside.split(",") if each.strip()]
    file = study_of(command, neighbours, name, read_catalogue(CATALOGUE))
    typer.echo(f"study: {file}", err=True)
    if only_write:
        return
    project = load(file, blocks)  # a number of launches that cannot be is one sentence, before Snakemake starts
    snakemake.sweep(file, cores, lambda line: typer.echo(line, err=True), blocks, shows_result=False)
    print_result(file)
    refuse_nothing(project)
