"""The command `castmates retry`: discards blocks that are of no use to the analysis."""

import typer

from castmates.cli.arguments import StudyFile


def retry(study: StudyFile) -> None:
    """Discard failed and unusable launches, so that the next sweep repeats them."""
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless

    folder = load(study).results
    discarded = 0
    for reason, place in (*forget_useless(folder), *forget_failed(folder)):
        typer.echo(f"discarded ({reason}): {place}")
        discarded += 1
    typer.echo(f"{discarded} launch{'' if discarded == 1 else 'es'} discarded in {folder}")
