"""The command `castmates pilot`: a few blocks, and the design that follows from them."""

from typing import Annotated

import typer

from castmates.cli.arguments import StudyFile


def pilot(
    study: StudyFile,
    blocks: Annotated[int, typer.Option(min=2, max=1000, help="Launches of each program.")] = 3,
) -> None:
    """Measure a few launches, and propose how many launches and rounds the study should have."""
    from castmates.pipeline.pilot import measure, propose
    from castmates.project import load

    project = load(study)
    typer.echo(propose(project.study, measure(project, blocks)), nl=False)
