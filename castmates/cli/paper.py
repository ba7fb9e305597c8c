"""The command `castmates paper`: what a paper needs of a study."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import RESULTS, Studied, command


@command("paper", "castmates paper results/first-look --licence CC-BY-4.0", group=RESULTS, order=6)
def paper(
    study: Studied,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="The folder to write; results/<study>/paper if left out."
        ),
    ] = None,
    licence: Annotated[str, typer.Option(help="Licence of the data: an SPDX identifier, or an address.")] = "",
    author: Annotated[list[str] | None, typer.Option(help="Author of the data; may be given several times.")] = None,
) -> None:
    """Write figures, LaTeX tables, methods and an RO-Crate of a study."""
    from castmates.report.paper.paper import write_paper
    from castmates.results.published import METADATA

    folder, no_replay = write_paper(study, output, licence, author or [])
    typer.echo(f"{folder}: methods.tex and .md, tables/, figures/, paper.tex to look at, {METADATA}")
    if not licence:
        typer.echo("No licence was stated for the data (--licence CC-BY-4.0, for example); the crate records that.")
    if no_replay:
        typer.echo(f"`castmates sweep --replay` cannot measure the study again from this folder: {no_replay}")
