"""The command `castmates plan`: a study before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.arguments import LIMIT, Format, Launches, StudyFile, complete_workloads, enough
from castmates.cli.command import BEGIN, INSTEAD, command, only_with, option
from castmates.cli.screen import show, show_json

if TYPE_CHECKING:
    from castmates.project import Project

PREDICT = only_with("--predict")


@command(
    "plan",
    "castmates plan study.yaml",
    "castmates plan study.yaml --scenes",
    "castmates plan study.yaml --pilot",
    "castmates plan study.yaml --predict --lead chase --beside stream,gather",
    group=BEGIN,
    order=4,
)
def plan(
    study: StudyFile,
    scenes: Annotated[bool, option("--scenes", help="Also every launch and its scenes.")] = False,
    counters: Annotated[bool, option("--counters", help="Also what is counted.")] = False,
    masks: Annotated[bool, option("--masks", help="Also who gets which part of the cache.")] = False,
    everything: Annotated[
        bool, option("--all", help="All details; with --predict also losses that were measured.")
    ] = False,
    form: Format = "text",
    launches: Launches = None,
    machine: Annotated[
        Path | None,
        option(metavar="FILE", help="Plan for the machine that `castmates doctor --capture` wrote into this file."),
    ] = None,
    pilot: Annotated[
        bool,
        option(
            "--pilot",
            help="Measure a few launches (--launches; 3), and propose how many launches and rounds the study should "
            "have.",
            under=INSTEAD,
        ),
    ] = False,
    predict: Annotated[
        bool,
        option(
            "--predict",
            help="Predict what pairs lose that were not measured, from those that were, and show how far off "
            "predictions are.",
            under=INSTEAD,
        ),
    ] = False,
    lead: Annotated[
        str, option(metavar="NAME", help="Only this program; with --beside one combination.", under=PREDICT)
    ] = "",
    beside: Annotated[
        str,
        option(
            metavar="NAMES",
            help="All that run beside it, separated by commas.",
            autocompletion=complete_workloads,
            under=only_with("--lead"),
        ),
    ] = "",
    limit: Annotated[str, option(metavar="PERCENT", show_default=False, help=LIMIT, under=PREDICT)] = "",
) -> None:
    """Show what a study will do, how long it takes, what it can find.

    Nothing runs, unless a pilot is asked for.
    """
    if pilot:
        _pilot(study, 3 if launches is None else launches)
        return
    if predict:
        from castmates.cli.predict import predict_losses

        predict_losses(study, lead, beside, limit, everything, form == "json")
        return
    from castmates.project import load, on_captured_machine

    project = load(study, launches)
    if machine is not None:
        project = on_captured_machine(project, machine)
    if form == "json":
        from castmates.terminal.preview.outline import outline

        show_json(outline(project, project.plan()))
    else:
        _show(project, scenes or everything, counters or everything, masks or everything, everything)


def _pilot(study: Path, launches: int) -> None:
    from castmates.linux.ownership import refuse_strangers
    from castmates.pipeline.pilot import measure, propose
    from castmates.project import load

    enough(launches, 2, "--pilot")
    refuse_strangers(study)
    project = load(study)
    typer.echo(propose(project.study, measure(project, launches)), nl=False)


def _show(project: "Project", scenes: bool, counters: bool, masks: bool, chances: bool) -> None:
    from rich.text import Text

    from castmates.terminal.preview import details, rounds
    from castmates.terminal.preview.outline import outline
    from castmates.terminal.preview.places import places
    from castmates.terminal.preview.screen import chances_table, screen

    if project.elsewhere:
        words = filter(None, [f"On the machine in {project.elsewhere.file}", project.elsewhere.processor])
        show(Text(": ".join(words)), "")
    planned = project.plan()
    plan, found = rounds.expected(project, planned), outline(project, planned)
    show(screen(found))
    if project.elsewhere:
        show("", places(project))
    if scenes:
        show("", *details.scenes(project, planned, found))
    if counters:
        show("", *details.counters(project, plan))
    if masks:
        show(*details.masks(project, plan))
    if chances and found.chances.known:
        show("", chances_table(found.chances))
