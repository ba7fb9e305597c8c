"""The command `castmates run`: one block, without the workflow."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.arguments import StudyFile
from castmates.errors import CastmatesError


def run(
    block: Annotated[str, typer.Argument(help="COMPANY/NUMBER, as `castmates plan --scenes` prints it.")],
    study: StudyFile,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the block's files; its place in results/ if left out.")
    ] = None,
) -> None:
    """Measure one block without the workflow (its environments must be built)."""
    from castmates.files import cache_folder
    from castmates.pipeline.measure_block import measure_block
    from castmates.project import load
    from castmates.results.columns.block import RECORD

    project = load(study)
    folder = output or project.results.block(block)
    if (folder / RECORD).exists():
        raise CastmatesError(f"{folder} holds a measured block; remove it first, or give another --output.")
    measure_block(project.plan(), block, folder, cache_folder())
