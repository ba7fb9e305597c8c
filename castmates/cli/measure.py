"""The command `castmates measure`: a program beside others, without a study file."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import (
    BEGIN,
    CATALOGUE,
    AfterDashes,
    Beside,
    Cores,
    Format,
    Launches,
    OnlyWrite,
    Quiet,
    Verbose,
    command,
    loudness,
    only_with,
    option,
)
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.pipeline.command_trial import Command


@command(
    "measure",
    "castmates measure --beside stream,chase -- gzip -9 --stdout /bin/bash",
    "castmates measure --quick -- gzip -9 --stdout /bin/bash",
    "castmates measure --cpus 2 --step-line 'step ([0-9]+)' -- python train.py",
    "sudo castmates measure --quick --count libz.so.1:deflate -- python3 -m zipfile -c out.zip /usr/lib",
    group=BEGIN,
    order=6,
    kind=AfterDashes,
)
def measure(
    program: Annotated[list[str], typer.Argument(metavar="COMMAND", help="Your program and its arguments, after --.")],
    beside: Beside = "stream,chase",
    fast: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A first number within about a minute, from one or two launches and without controls. The same "
            "command without --quick makes it precise; what was measured counts.",
        ),
    ] = False,
    cpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="CPUs that it is given; as many as it uses, if there are so many.",
        ),
    ] = None,
    step_line: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help="A line of its output that this matches is a step, and a run may take as long as it likes; the first "
            "group, if there is one, is the number of steps so far.",
        ),
    ] = "",
    ready_line: Annotated[
        str,
        option(
            metavar="REGEX",
            help="Ready at the first line that this matches; at the first step if left out.",
            under=only_with("--step-line"),
        ),
    ] = "",
    count: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Counted in a program that prints no steps, and a run may take as long as it likes: PROGRAM:FUNCTION, "
            "of which each call is a step (as root), or instructions, where the processor counts them.",
        ),
    ] = "",
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable that it is started with; may be repeated."),
    ] = None,
    launches: Launches = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the study; the program's if left out.")] = "",
    cores: Cores = "all",
    quiet: Quiet = False,
    verbose: Verbose = False,
    only_write: OnlyWrite = False,
    form: Format = "text",
) -> None:
    """Measure what a program of yours loses beside others.

    It is run again and again, alone and beside each of them. The study that this writes into studies/ can be changed,
    planned and measured like any other.

    Of your environment variables it gets HOME, USER, LOGNAME, LANG and PATH, and others by --env. Variables for
    libraries with threads (OMP_NUM_THREADS and its like) are set to the number of its CPUs.
    """
    from castmates.cli.screen import show_json
    from castmates.cli.show import print_result
    from castmates.pipeline.command_study import study_of
    from castmates.pipeline.first_number import first_number
    from castmates.pipeline.reused_controls import sweep_with_reused
    from castmates.pipeline.snakemake import refuse_nothing
    from castmates.project import load, read_catalogue
    from castmates.report.answer.first_number import first_lines

    antagonists = [each.strip() for each in beside.split(",") if each.strip()]
    say = partial(typer.echo, err=True)
    asked = _command(program, env or [], step_line, ready_line, cpus, count)
    file = study_of(asked, antagonists, name, read_catalogue(CATALOGUE), say)
    say(f"study: {file}")
    if only_write:
        return
    project = load(file, launches)  # a number of launches that cannot be is one sentence, before Snakemake starts
    if fast:
        found = first_number(project, say)
        if found is None:
            print_result(file, form == "json")
        elif form == "json":
            show_json(found)
        else:
            typer.echo("\n".join(first_lines(found)))
        return
    sweep_with_reused(file, cores, say, launches, loudness(quiet, verbose))
    print_result(file, form == "json")
    refuse_nothing(project)


def _command(
    program: list[str], env: list[str], step_line: str, ready_line: str, cpus: int | None, count: str
) -> "Command":
    import re

    from castmates.pipeline.command_trial import INSTRUCTIONS, Command
    from castmates.study.progress_keys import CALLS, SQLITE
    from castmates.study.written import posix

    if count and step_line:
        raise CastmatesError("--count and --step-line both say what a step is; give one of them.")
    if count not in ("", INSTRUCTIONS) and not re.fullmatch(CALLS, count):
        raise CastmatesError(f"--count is '{count}', expected PROGRAM:FUNCTION, such as {SQLITE}, or {INSTRUCTIONS}.")

    for name, pattern in (("--step-line", step_line), ("--ready-line", ready_line)):
        try:
            posix(pattern)
        except ValueError as problem:
            raise CastmatesError(f"{name} is '{pattern}', expected {problem}.") from None
    return Command(program, dict(map(_variable, env)), step_line, ready_line, cpus or 0, count)


def _variable(written: str) -> tuple[str, str]:
    import re

    name, equals, value = written.partition("=")
    if not equals or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        how = f'; `--env "{name}=${name}"` hands on yours' if not equals and name.isidentifier() else ""
        raise CastmatesError(f"--env is '{written}', expected NAME=VALUE{how}.")
    return name, value
