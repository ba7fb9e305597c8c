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
    from castmates.pipeline.own_study import study_of
    from castmates.preview.duration import still_to_measure
    from castmates.project import load, read_catalogue

    neighbours = [each.strip() for each in beside.split(",") if each.strip()]
    file = study_of(command, neighbours, name, read_catalogue(CATALOGUE))
    typer.echo(f"study: {file}", err=True)
    if only_write:
        return
    project = load(file, blocks)
    done_before = not still_to_measure(project, project.plan())[1]
    snakemake.sweep(file, cores, lambda line: typer.echo(line, err=True), blocks)
    if done_before:  # else the sweep has just shown it
        print_result(file)
