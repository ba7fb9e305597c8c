"""The command `castmates retry`: forgets blocks that give the analysis nothing."""

import typer

from castmates.cli.arguments import StudyFile


def retry(study: StudyFile) -> None:
    """Discard failed and unusable launches, so that the next sweep repeats them."""
    from castmates.project import load
    from castmates.results.records import forget_useless

    folder = load(study).results
    forgotten = 0
    for reason, place in forget_useless(folder):
        typer.echo(f"forgotten ({reason}): {place}")
        forgotten += 1
    typer.echo(f"{forgotten} block{'' if forgotten == 1 else 's'} forgotten in {folder}")
