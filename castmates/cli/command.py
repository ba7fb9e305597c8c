"""How a command is declared beside its code; `main.py` collects what is declared. And how `--help` is laid out."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from castmates.errors import CastmatesError

Function = TypeVar("Function", bound=Callable[..., object])
BEGIN, RESULTS, LEARN = "Measure", "Results", "Learn"
GROUPS = (BEGIN, RESULTS, LEARN)
INSTEAD = "Instead"  # the heading above options of which one command takes one
DECLARED: "list[Declared]" = []


@dataclass(frozen=True)
class Declared:
    """A command: its name, such as `sweep` or `trace query`, and where it stands in the list of commands."""

    name: str
    about: str  # its line in the list
    run: Callable[..., object] | None  # None: a family of commands
    examples: tuple[str, ...]
    group: str
    order: int
    kind: "type[Command]"


def only_with(*modes: str) -> str:
    """The heading above options that one of these needs: it is shown in the help, and followed."""
    return f"With {' or '.join(modes)}"


def option(*names: str, under: str | None = None, **more: Any) -> Any:  # noqa: ANN401 (what typer gives)
    """An option; `under` is the heading above it."""
    return typer.Option(*names, rich_help_panel=under, **more)


class Command(TyperCommand):
    """A command whose flags are shown without a type."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (typer does not export the type)
        """The parameters as help, parser and completion use them."""
        return _without_types(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (typer does not export the type)
        """Refuse options that do not go together, then run the command."""
        given = {one.opts[0]: one for one in self.params if isinstance(one, TyperOption) and _is_given(ctx, one)}
        instead = [name for name, one in given.items() if one.rich_help_panel == INSTEAD]
        if len(instead) > 1:
            raise CastmatesError(f"{instead[0]} and {instead[1]} do different things; give one of them.")
        for name, one in given.items():
            needed = re.findall(r"--[\w-]+", one.rich_help_panel or "")
            if needed and not given.keys() & {*needed}:
                raise CastmatesError(f"{name} needs {' or '.join(needed)}.")
        return super().invoke(ctx)


class Runner(Command):
    """A command that starts programs, and so refuses a place where other users could have put them."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (typer does not export the type)
        """Look who could have written what is there, then run the command."""
        from castmates.linux.ownership import refuse_strangers

        refuse_strangers(ctx.params.get("study"))
        return super().invoke(ctx)


class AfterDashes(Command):
    """A command whose own program, with its options, comes after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (typer does not export the type)
        """Name `--` where an option is unknown: it is the program's."""
        try:
            return super().parse_args(ctx, args)
        except Exception as problem:
            if "No such option" in str(getattr(problem, "message", "")) and "--" not in args:
                problem.message = f"{problem.message}: put -- before your command, then its own options."  # type: ignore[attr-defined]
            raise


class Group(TyperGroup):
    """A group of commands whose flags are shown without a type."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (typer does not export the type)
        """The parameters as help, parser and completion use them."""
        return _without_types(super().get_params(ctx))


def command(
    name: str, *examples: str, group: str = "", order: int = 99, kind: type[Command] = Command
) -> Callable[[Function], Function]:
    """Declare the function below as the command of this name; its docstring begins with the line in the list."""

    def declare(function: Function) -> Function:
        about = (function.__doc__ or "").partition("\n")[0]
        DECLARED.append(Declared(name, about, function, examples, group, order, kind))
        return function

    return declare


def family(name: str, about: str, group: str = "", order: int = 0) -> None:
    """Declare what commands of two words have in common; without a group it is not in the list."""
    DECLARED.append(Declared(name, about, None, (), group, order, Command))


def example(*lines: str) -> str:
    """The end of a command's help: Markdown too, for the page with all commands."""
    head = "Example" if len(lines) == 1 else "Examples"
    return "\n".join([head, "", *(f"    {line}" for line in lines)])


def _is_given(ctx: Any, option: TyperOption) -> bool:  # noqa: ANN401 (typer does not export the type)
    source = ctx.get_parameter_source(option.name)
    return source is not None and source.name == "COMMANDLINE"


def _without_types(parameters: Iterable[Any]) -> list[Any]:
    shown = list(parameters)
    for parameter in shown:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return shown
