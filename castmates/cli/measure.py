"""The command `castmates measure`: a program beside others, without a study file."""

from functools import partial
from typing import Annotated

import typer

from castmates.cli.command import (
    BEGIN,
    CATALOGUE,
    AfterDashes,
    Beside,
    Cores,
    Launches,
    OnlyWrite,
    Quiet,
    Verbose,
    command,
    loudness,
)


@command(
    "measure",
    "castmates measure --beside stream,chase -- gzip -9 --stdout /bin/bash",
    group=BEGIN,
    order=6,
    kind=AfterDashes,
)
def measure(
    program: Annotated[list[str], typer.Argument(metavar="COMMAND", help="Your program and its arguments, after --.")],
    beside: Beside = "stream,chase",
    launches: Launches = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the study; the program's if left out.")] = "",
    cores: Cores = "all",
    quiet: Quiet = False,
    verbose: Verbose = False,
    only_write: OnlyWrite = False,
) -> None:
    """Measure what a program of yours loses beside others.

    It is run again and again, alone and beside each of them. The study that this writes into studies/ can be changed,
    planned and measured like any other.
    """
    from castmates.cli.show import print_result
    from castmates.pipeline import snakemake
    from castmates.pipeline.own_study import study_of
    from castmates.pipeline.snakemake import refuse_nothing
    from castmates.project import load, read_catalogue

    antagonists = [each.strip() for each in beside.split(",") if each.strip()]
    file = study_of(program, antagonists, name, read_catalogue(CATALOGUE))
    typer.echo(f"study: {file}", err=True)
    if only_write:
        return
    project = load(file, launches)  # a number of launches that cannot be is one sentence, before Snakemake starts
    say = partial(typer.echo, err=True)
    snakemake.sweep(file, cores, say, launches, loudness(quiet, verbose), shows_result=False)
    print_result(file)
    refuse_nothing(project)
