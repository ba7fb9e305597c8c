"""The command `castmates`: its commands, in groups and in the order of work, each with an example."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from castmates import __version__
from castmates.cli.build_environment import build_environment
from castmates.cli.build_inputs import build_inputs
from castmates.cli.compare import compare
from castmates.cli.confirm import confirm
from castmates.cli.convert import convert
from castmates.cli.doctor import doctor
from castmates.cli.export import export
from castmates.cli.findings import findings
from castmates.cli.flame import flame
from castmates.cli.grant import grant
from castmates.cli.graph import graph
from castmates.cli.help import INTERNALS, REPAIR, RESULTS, START, Command, Group, Runner, example
from castmates.cli.init import init
from castmates.cli.letters import let_print_anything
from castmates.cli.measure import measure
from castmates.cli.open import open_report
from castmates.cli.paper import paper
from castmates.cli.pilot import pilot
from castmates.cli.place import place
from castmates.cli.plan import plan
from castmates.cli.predict import predict
from castmates.cli.profile import profile
from castmates.cli.query import query
from castmates.cli.recommend import recommend
from castmates.cli.replay import replay
from castmates.cli.restore import restore
from castmates.cli.retry import retry
from castmates.cli.run import run
from castmates.cli.schemas import schemas
from castmates.cli.show import show_result
from castmates.cli.status import status
from castmates.cli.sweep import sweep
from castmates.cli.topdown import topdown
from castmates.cli.trace import trace
from castmates.cli.try_advice import try_advice
from castmates.cli.workloads import workloads
from castmates.errors import CastmatesError

Listed = tuple[str, Callable[..., object] | typer.Typer, tuple[str, ...]]  # name, command, examples
COMMANDS: dict[str, tuple[Listed, ...]] = {
    START: (
        ("init", init, ("castmates init", "castmates init my-study")),
        (
            "doctor",
            doctor,
            ("castmates doctor", "castmates doctor --all", "castmates doctor --capture FILE"),
        ),
        ("workloads", workloads, ()),
        ("plan", plan, ("castmates plan study.yaml", "castmates plan study.yaml --scenes")),
        ("sweep", sweep, ("castmates sweep study.yaml", "castmates sweep study.yaml --blocks 12")),
        ("measure", measure, ("castmates measure --beside stream,chase -- gzip -9 --stdout /bin/bash",)),
        ("profile", profile, ("castmates profile --beside stream,chase -- python train.py",)),
        (
            "trace",
            trace,
            (
                "castmates trace study.yaml dlrm-train+stream",
                "castmates trace study.yaml stream --seconds 2 --events scheduler,syscalls",
            ),
        ),
        ("pilot", pilot, ("castmates pilot study.yaml",)),
        ("grant", grant, ("sudo castmates grant", "sudo castmates grant --undo")),
    ),
    RESULTS: (
        ("show", show_result, ("castmates show", "castmates show results/first-look --json")),
        (
            "open",
            open_report,
            ("castmates open results/first-look", "castmates open results/first-look --trace MIX"),
        ),
        ("status", status, ("castmates status", "castmates status study.yaml --json")),
        ("compare", compare, ("castmates compare results/old results/new",)),
        ("recommend", recommend, ("castmates recommend study.yaml --lead-loss 3%",)),
        ("confirm", confirm, ("castmates confirm study.yaml --lead-loss 3%",)),
        (
            "predict",
            predict,
            ("castmates predict study.yaml", "castmates predict study.yaml --lead chase --beside stream,gather"),
        ),
        ("findings", findings, ("castmates findings study.yaml", "castmates findings study.yaml --all")),
        ("try", try_advice, ("castmates try study.yaml input-bound/dlrm-train",)),
        ("paper", paper, ("castmates paper results/first-look --licence CC-BY-4.0",)),
        ("place", place, ("castmates place study.yaml --jobs jobs.yaml", "castmates place study.yaml --confirm")),
        ("replay", replay, ("castmates replay first-look/paper", "castmates replay results/first-look --blocks 3")),
        (
            "export",
            export,
            ("castmates export results/first-look", "castmates export results/first-look --tensorboard"),
        ),
        (
            "query",
            query,
            ("castmates query study.yaml --named time-on-cpu", 'castmates query study.yaml "SELECT * FROM steps"'),
        ),
        (
            "flame",
            flame,
            (
                "castmates flame study.yaml lead+stream",
                "castmates flame study.yaml lead+stream --scene solo --operations",
            ),
        ),
        ("convert", convert, ("castmates convert trace.strace", "castmates convert lttng-traces/session --to tables")),
        (
            "graph",
            graph,
            ("castmates graph study.yaml dlrm-train", "castmates graph study.yaml dlrm-train+stream --colour loss"),
        ),
    ),
    REPAIR: (
        ("retry", retry, ("castmates retry && castmates sweep",)),
        ("restore", restore, ("sudo castmates restore",)),
    ),
    INTERNALS: (
        ("run", run, ("castmates run chase-3f0c2a91/1 study.yaml",)),
        ("build-environment", build_environment, ("castmates build-environment native",)),
        ("build-inputs", build_inputs, ("castmates build-inputs", "castmates build-inputs text")),
        ("topdown", topdown, ()),
        ("schemas", schemas, ("castmates schemas --check",)),
    ),
}
RUNNERS = {"sweep", "measure", "profile", "trace", "pilot", "confirm", "try", "place", "replay", "run"}
RUNNERS |= {"build-environment", "build-inputs"}  # and some of `workloads` and `doctor`


class _InOrder(Group):
    """The whole command: typer alone would list groups of commands first."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 (typer does not export the type)
        """The names in the order of work."""
        return [name for listed in COMMANDS.values() for name, _, _ in listed]


# Everything heavy is imported inside the commands: `castmates --help` and `doctor` must be instant.
app = typer.Typer(
    name="castmates",
    cls=_InOrder,
    help="How much does a program lose when it shares a processor with others, why, and what gives it back?",
    epilog=example(
        "castmates init && castmates sweep", "castmates measure --beside stream,chase -- gzip -9 --stdout /bin/bash"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for panel, listed in COMMANDS.items():
    for name, command, examples in listed:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=panel)
        else:
            kind = Runner if name in RUNNERS else Command
            app.command(name, cls=kind, epilog=example(*examples), rich_help_panel=panel)(command)


def main() -> None:
    """Run the command line; an error is a sentence and a non-zero exit."""
    let_print_anything()
    try:
        app()
    except CastmatesError as problem:
        from castmates.cli.excerpt import excerpt
        from castmates.english import printable

        sys.exit(printable("\n".join(filter(None, [f"castmates: {problem}", excerpt(str(problem))]))))


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
