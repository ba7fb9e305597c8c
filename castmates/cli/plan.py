"""The command `castmates plan`: a study before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.arguments import AsJson, Launches, StudyFile
from castmates.cli.screen import show, show_json

if TYPE_CHECKING:
    from castmates.project import Project


def plan(
    study: StudyFile,
    scenes: Annotated[bool, typer.Option("--scenes", help="Also every launch and its scenes.")] = False,
    counters: Annotated[bool, typer.Option("--counters", help="Also what is counted.")] = False,
    masks: Annotated[bool, typer.Option("--masks", help="Also who gets which part of the cache.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All details.")] = False,
    as_json: AsJson = False,
    blocks: Launches = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Plan for the machine that `castmates doctor --capture` wrote into this file."
        ),
    ] = None,
) -> None:
    """Show what a study will do, how long it takes, and how small a loss it can find; nothing runs."""
    from castmates.project import load, on_captured_machine

    project = load(study, blocks)
    if machine is not None:
        project = on_captured_machine(project, machine)
    if as_json:
        from castmates.preview.outline import outline

        show_json(outline(project, project.plan()))
    else:
        _show(project, scenes or everything, counters or everything, masks or everything, everything)


def _show(project: "Project", scenes: bool, counters: bool, masks: bool, chances: bool) -> None:
    from rich.text import Text

    from castmates.preview import details, rounds
    from castmates.preview.outline import outline
    from castmates.preview.places import places
    from castmates.preview.screen import chances_table, screen

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
