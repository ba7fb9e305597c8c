"""The command `castmates profile`: a program's step, and which operations lose beside others, without a study file."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import (
    BEGIN,
    CATALOGUE,
    AfterDashes,
    Cores,
    Launches,
    OnlyWrite,
    Quiet,
    Verbose,
    command,
    complete_workloads,
    loudness,
)


@command(
    "profile", "castmates profile --beside stream,chase -- python train.py", group=BEGIN, order=7, kind=AfterDashes
)
def profile(
    program: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="Your program and its arguments, after --: python train.py.")
    ],
    beside: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help='Its antagonists, separated by commas; "" for none, and no losses.',
            autocompletion=complete_workloads,
        ),
    ] = "stream,chase",
    steps: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="Training steps in each trace; 8 if left out.")
    ] = None,
    times: Annotated[
        int | None, typer.Option(min=1, max=100, metavar="N", help="Traces of each scene in a launch; 3 if left out.")
    ] = None,
    traced: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="Launches that trace, besides those that measure (--launches); 3 if left out, for intervals.",
        ),
    ] = None,
    launches: Launches = None,
    only_trace: Annotated[
        bool, typer.Option("--only-trace", help="Measure no losses of speed: the report is that of a profile.")
    ] = False,
    step_function: Annotated[
        str, typer.Option(metavar="NAME", help="The function (tf.function, jax.jit) of which each call is a step.")
    ] = "",
    cpus: Annotated[int, typer.Option(min=1, metavar="N", help="CPUs that the program is given.")] = 1,
    environment: Annotated[
        str, typer.Option(metavar="NAME", help="An environment of Castmates to run it in, such as tfmodels.")
    ] = "",
    without_xla: Annotated[
        bool, typer.Option("--without-xla", help="Keep Keras from compiling by XLA, which hides operations.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the study; the script's if left out.")] = "",
    cores: Cores = "all",
    quiet: Quiet = False,
    verbose: Verbose = False,
    only_write: OnlyWrite = False,
) -> None:
    """Show what a training step is made of, and loses beside others.

    The program, of TensorFlow, Keras, PyTorch or JAX, is not changed. It runs until it has made some steps, then in
    several launches, which end it in the middle of its training.

    The study that this writes into studies/ can be changed, planned and swept like any other.

    Of your environment variables, those that it needs go into the command: -- env NAME=VALUE python train.py
    """
    from castmates.cli.show import print_result
    from castmates.pipeline import snakemake
    from castmates.pipeline.followed_study import Followed, followed_study
    from castmates.project import load, read_catalogue

    antagonists = [each.strip() for each in beside.split(",") if each.strip()]
    given = {"steps": steps, "times": times, "launches": traced}
    keys = {key: number for key, number in given.items() if number is not None}
    followed = Followed(program, antagonists, step_function, cpus, environment, not without_xla, keys)
    file = followed_study(followed, name, read_catalogue(CATALOGUE), _say)
    _say(f"study: {file}")
    if only_write:
        return
    only_trace = only_trace or not antagonists
    load(file, launches)  # refuses what cannot be, before anything runs
    options = loudness(quiet, verbose)
    snakemake.sweep(file, cores, _say, launches, options, shows_result=False, only_traces=only_trace)
    traced_it = _print_operations(file)
    if not only_trace:
        typer.echo("")
        print_result(file)
    sweep = f", and castmates sweep {file} measures losses" if only_trace and antagonists else ""
    typer.echo(f"\nNext  castmates open {file}{sweep}")
    if not traced_it:
        raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print_operations(file: Path) -> bool:
    """Print what was traced; whether anything was."""
    from castmates.cli.screen import console
    from castmates.report.answer.operation_lines import operation_lines
    from castmates.report.results import read_results
    from castmates.results.find import find

    screen, results = console(), read_results(find(file)[0].path, file)
    for line in operation_lines(results, screen.width):
        screen.print(line, markup=False, soft_wrap=True, highlight=False)
    return not results.iterations.empty
