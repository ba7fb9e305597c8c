"""The command `castmates plan`: a study before anything runs."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.arguments import DEFAULT_STUDY, StudyFile


def plan(
    study: StudyFile = DEFAULT_STUDY,
    machine: Annotated[
        Path | None, typer.Option(help="Only place the mixes, on the machine that `doctor --snapshot` recorded here.")
    ] = None,
) -> None:
    """Print mixes, scenes, blocks, windows and the expected duration, before anything runs."""
    from castmates.project import load

    project = load(study)
    if machine is None:
        from castmates.preview.study import describe

        typer.echo(describe(project), nl=False)
    else:
        from castmates.machine.snapshot import read_snapshot
        from castmates.preview.places import describe_places

        typer.echo(describe_places(project, read_snapshot(machine)), nl=False)
