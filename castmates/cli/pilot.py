"""The command `castmates pilot`: a few blocks, and the design that follows from them."""

from typing import Annotated

import typer

from castmates.cli.arguments import StudyFile


def pilot(
    study: StudyFile,
    blocks: Annotated[int, typer.Option(min=2, max=1000, help="Blocks of each company.")] = 3,
) -> None:
    """Measure a few blocks, and propose rounds, blocks, window and settle time for the study."""
    from castmates.pipeline.pilot import measure, propose
    from castmates.project import load

    project = load(study)
    typer.echo(propose(project.study, measure(project, blocks)), nl=False)
