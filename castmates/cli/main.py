"""The command `castmates`: its commands, in the order of work."""

import sys
from typing import Annotated

import typer

from castmates import __version__
from castmates.cli.build_environment import build_environment
from castmates.cli.build_inputs import build_inputs
from castmates.cli.compare import compare
from castmates.cli.confirm import confirm
from castmates.cli.doctor import doctor
from castmates.cli.grant import grant
from castmates.cli.paper import paper
from castmates.cli.pilot import pilot
from castmates.cli.plan import plan
from castmates.cli.recommend import recommend
from castmates.cli.restore import restore
from castmates.cli.retry import retry
from castmates.cli.run import run
from castmates.cli.schemas import schemas
from castmates.cli.topdown import topdown
from castmates.cli.workloads import workloads
from castmates.errors import CastmatesError

# Everything heavy is imported inside the commands: `castmates --help` and `doctor` must be instant.
app = typer.Typer(
    name="castmates",
    help="Co-location interference studies: how much a program loses beside others, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
PREPARE = (doctor, grant, build_environment, build_inputs)
MEASURE = (plan, pilot, run, retry)
EXPLAIN = (recommend, confirm, compare, paper)
REPAIR = (restore, schemas)

for command in (*PREPARE, *MEASURE, *EXPLAIN, *REPAIR):
    app.command()(command)
for group in (workloads, topdown):
    app.add_typer(group)


def main() -> None:
    """Run the command line; an error is a sentence and a non-zero exit."""
    try:
        app()
    except CastmatesError as problem:
        sys.exit(f"castmates: {problem}")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"castmates {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the whole command."""
