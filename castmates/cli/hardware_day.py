"""The command `castmates hardware-day`: the first day on a rented machine."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import BEGIN, Runner, command, option
from castmates.errors import CastmatesError


@command(
    "hardware-day",
    "sudo castmates hardware-day",
    "castmates hardware-day FOLDER --minutes 60 --dry-run",
    group=BEGIN,
    order=2,
    kind=Runner,
)
def hardware_day(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where everything is written; the same one goes on.")
    ] = Path("hardware-day"),
    minutes: Annotated[
        float, option("--minutes", min=1, max=1440, metavar="N", help="How long all of it takes at most.")
    ] = 90.0,
    dry_run: Annotated[bool, option("--dry-run", "-n", help="Only list the steps, with the time of each.")] = False,
) -> None:
    """Find out what a rented machine is, and put it into one file.

    Ctrl-C is safe: everything is put right, and the same command goes on where it stopped. Status 1: a step failed.
    """
    from contextlib import suppress

    from castmates.hardware_day.day import spend

    def say(line: str) -> None:
        with suppress(OSError):  # the listener may be gone
            typer.echo(line)

    try:
        went_well = spend(folder, minutes, dry_run, say)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if not went_well:
        raise CastmatesError(f"not every step was done; `castmates hardware-day {folder}` tries what is missing.")
