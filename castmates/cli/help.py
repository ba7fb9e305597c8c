"""How `--help` is laid out: an example below each command, and no type behind a flag, which takes no value."""

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

START, RESULTS, REPAIR, INTERNALS = "Start", "Results", "Repair", "Internals"


class Command(TyperCommand):
    """A command whose flags are shown without a type."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (typer does not export the type)
        """The parameters as help, parser and completion use them."""
        return _without_types(super().get_params(ctx))


class Runner(Command):
    """A command that starts programs, and so refuses a place where other users could have put them."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (typer does not export the type)
        """Look who could have written what is there, then run the command."""
        from castmates.linux.ownership import refuse_strangers

        refuse_strangers(ctx.params.get("study"))
        return super().invoke(ctx)


class Group(TyperGroup):
    """A group of commands whose flags are shown without a type."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (typer does not export the type)
        """The parameters as help, parser and completion use them."""
        return _without_types(super().get_params(ctx))


def example(*lines: str) -> str:
    """The end of a command's help: Markdown too, for the page with all commands."""
    head = "Example" if len(lines) == 1 else "Examples"
    return "\n".join([head, "", *(f"    {line}" for line in lines)])


def _without_types(parameters: Iterable[Any]) -> list[Any]:
    shown = list(parameters)
    for parameter in shown:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return shown
