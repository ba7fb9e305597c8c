"""The command `castmates`: collects what the modules of this folder declare."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from castmates import __version__
from castmates.cli.command import DECLARED, GROUPS, Declared, Group, example
from castmates.cli.screen import excerpt, let_print_anything
from castmates.errors import CastmatesError

QUESTION = "How much does a program lose beside others, why, and what gives it back?"


def collected() -> list[Declared]:
    """All commands in the order of work; everything heavy is imported inside them, so that `--help` is instant."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem not in ("__init__", "main"):
            import_module(f"castmates.cli.{file.stem}")
    places = {group: place for place, group in enumerate(GROUPS)}
    return sorted(DECLARED, key=lambda one: (places.get(one.group, len(places)), one.order, one.name))


class _Castmates(Group):
    """The whole command: its list of commands fits on a screen, and needs nothing that is slow to import."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 (typer does not export the types)
        """The groups with a line for each command."""
        lines = [QUESTION, "Usage: castmates COMMAND [OPTIONS] …"]
        for group in GROUPS:
            lines += [group, *(f"  {one.name:<13}{one.about.rstrip('.')}" for one in COMMANDS if one.group == group)]
        lines += ["", "castmates COMMAND --help   its options, with examples      castmates --version"]
        formatter.write("\n".join(lines))


def _application() -> typer.Typer:
    whole = typer.Typer(name="castmates", cls=_Castmates, no_args_is_help=True, pretty_exceptions_enable=False)
    families = {one.name.partition(" ")[0]: typer.Typer() for one in COMMANDS if " " in one.name}
    for one in COMMANDS:
        first, _, second = one.name.partition(" ")
        epilog = example(*one.examples) if one.examples else None
        if first not in families or second:
            assert one.run, one.name
            place = families[first] if second else whole
            place.command(second or first, cls=one.kind, epilog=epilog)(one.run)
            continue
        if one.run:  # what is done where no second word follows
            families[first].callback(invoke_without_command=True)(one.run)
        whole.add_typer(
            families[first], name=first, cls=Group, help=one.about, epilog=epilog, hidden=not one.group,
            no_args_is_help=one.run is None,
        )  # fmt: skip
    return whole


def main() -> None:
    """Run the command line; an error is a sentence and a non-zero exit."""
    let_print_anything()
    try:
        app()
    except CastmatesError as problem:
        from castmates.english import printable

        sys.exit(printable("\n".join(filter(None, [f"castmates: {problem}", excerpt(str(problem))]))))
    except ModuleNotFoundError as lacking:
        from castmates.extras import explained

        sys.exit(f"castmates: {explained(lacking)}")


COMMANDS = collected()
app = _application()


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
