"""The command `castmates init`: a study file to begin with."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.cli.command import BEGIN, command


@command(
    "init",
    "castmates init",
    "castmates init my-study",
    "castmates init mine --from BenchCast/run.sh",
    group=BEGIN,
    order=1,
)
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write it.", show_default="here")] = Path(),
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take mixes, suites and events from files of BenchCast; once for each (castmates help benchcast).",
        ),
    ] = None,
) -> None:
    """Write a commented study of your own, study.yaml, into a folder.

    Nothing is asked, nothing is overwritten.
    """
    if source:
        _import(folder, source)
        return
    from castmates.pipeline.own_study import write_starter
    from castmates.results.named import DEFAULT_STUDY

    file = write_starter(folder)
    where = "" if folder == Path() else f"cd {folder} && "
    study = f" {file.name}" if (folder / DEFAULT_STUDY).is_file() else ""
    typer.echo(f"written: {file}")
    typer.echo("         it measures gzip beside two antagonists; name your own program under 'workloads'")
    typer.echo(f"Next     {where}castmates plan{study}")


def _import(folder: Path, files: list[Path]) -> None:
    from castmates.pipeline.benchcast import write_study

    written, left = write_study(folder, files)
    for file in written:
        typer.echo(f"written: {file}")
    if left:
        typer.echo("Not taken over:")
    for sentence in left:
        typer.echo(f"• {sentence}")
    typer.echo(f"Next     {'' if folder == Path() else f'cd {folder} && '}castmates plan {written[0].name}")
