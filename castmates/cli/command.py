"""How a command is declared beside its code; `main.py` collects what is declared. And how `--help` is laid out."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from castmates import shipped
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.study.written import InPercent


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


# Arguments and options that several commands of `castmates` take, and what a shell completes them to.


def _default() -> Path:
    from castmates.results.named import default_study

    return default_study()


def _study_file(context: typer.Context, study: Path) -> Path:
    from castmates.results.find import study_file

    return study if context.params.get("replay") else study_file(study)


def _cores(cores: str) -> str:
    if cores != "all" and not (cores.isdecimal() and int(cores) > 0):
        raise CastmatesError(f"--cores is '{cores}', expected a number of CPUs, or all.")
    return cores


def complete_study(incomplete: str) -> Iterator[str]:
    """The study files of the folder, and the folders of results."""
    from castmates.results.folder import RESULTS
    from castmates.results.named import OWN

    files = [file for pattern in (*OWN, f"{RESULTS}/[!.]*") for file in sorted(Path().glob(pattern))]
    yield from (name for name in map(str, files) if name.startswith(incomplete))


def complete_workloads(incomplete: str) -> Iterator[str]:
    """The names of the catalogue, after the last comma of what is written."""
    from castmates.workloads.written import names

    before, comma, last = incomplete.rpartition(",")
    yield from (f"{before}{comma}{name}" for name in names(CATALOGUE) if name.startswith(last))


HELP = "The study file, or the folder results/<study>; config/config.yaml or study.yaml if left out."
NEEDED = "The study file, or the folder results/<study>."
CATALOGUE = shipped.catalogue()
# What has results, wherever they lie.
Studied = Annotated[
    Path, typer.Argument(help=NEEDED, metavar="STUDY", show_default=False, autocompletion=complete_study)
]
StudiedOrDefault = Annotated[
    Path,
    typer.Argument(
        help=HELP, metavar="STUDY", show_default=False, autocompletion=complete_study, default_factory=_default
    ),
]
# What is planned, measured or changed: the command gets the study's file.
StudyFile = Annotated[
    Path,
    typer.Argument(
        help=HELP,
        metavar="STUDY",
        show_default=False,
        autocompletion=complete_study,
        default_factory=_default,
        callback=_study_file,
    ),
]
TextOrJson = Literal["text", "json"]
Format = Annotated[TextOrJson, typer.Option("--format", metavar="FORMAT", help="text, or json for scripts.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="Also write tables, figures and page into this folder."),
]
Cores = Annotated[
    str,
    typer.Option(
        "--cores", "-j", help="How many CPUs Snakemake may use: a number, or all.", metavar="N", callback=_cores
    ),
]
Launches = Annotated[
    int | None, typer.Option(min=1, max=10_000, metavar="N", help="More launches of each program than the study has.")
]
TracedMix = Annotated[
    str,
    typer.Argument(help="The mix that was traced, or words that only one has; MIX@PARTITION under one.", metavar="MIX"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only what came out.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Snakemake's own messages, with each command.")]
OnlyWrite = Annotated[bool, typer.Option("--only-write", help="Write the study file and measure nothing.")]
Beside = Annotated[
    str, typer.Option(metavar="NAMES", help="Its antagonists, separated by commas.", autocompletion=complete_workloads)
]
Margin = Annotated[
    str,
    typer.Option(
        metavar="N%",
        show_default=False,
        help="The largest difference that counts as none, such as 2%; the study's if left out.",
    ),
]
LIMIT = "What the lead may lose, such as 3%; the study's own limit if left out."


def loudness(quiet: bool, verbose: bool) -> list[str]:
    """Snakemake's options for how much is shown."""
    return [*(["--quiet", "progress"] if quiet else []), *(["--printshellcmds"] if verbose else [])]


def limit_of(limit: str) -> float | None:
    """The limit in per cent; None where it was left out."""
    from castmates.study.written import LOSS

    return _share("--limit", limit, LOSS)


def margin_of(margin: str) -> float | None:
    """The margin as a fraction; None where it was left out."""
    from castmates.study.written import PART

    return _share("--margin", margin, PART)


def _share(option: str, written: str, form: "InPercent") -> float | None:
    try:
        return form.read(written) if written else None
    except ValueError as problem:
        raise CastmatesError(f"{option} is '{written}', expected {problem}.") from None


def enough(launches: int | None, fewest: int, mode: str) -> None:
    """Refuse fewer launches than this mode of a command takes."""
    if launches is not None and launches < fewest:
        raise CastmatesError(f"--launches is {launches}, but with {mode} it is at least {fewest}.")
