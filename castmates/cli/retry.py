"""The command `castmates retry`: discards blocks that are of no use to the analysis."""

import typer

from castmates.cli.arguments import StudyFile


def retry(study: StudyFile) -> None:
    """Discard failed and unusable launches, so that the next sweep repeats them."""
    from castmates.english import counted
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless

    folder = load(study).results
    blocks = 0
    for reason, place in forget_useless(folder):
        typer.echo(f"discarded ({reason}): {place}")
        blocks += 1
    typer.echo(f"{counted(blocks, 'block')} discarded in {folder}")
    profiles = 0
    for reason, place in forget_failed(folder):
        typer.echo(f"discarded ({reason}): {place}")
        profiles += 1
    if profiles:
        typer.echo(f"{counted(profiles, 'profile launch')} discarded in {folder}")
