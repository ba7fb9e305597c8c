"""The command `castmates retry`: discards blocks that are of no use to the analysis."""

import typer

from castmates.cli.arguments import StudyFile


def retry(study: StudyFile) -> None:
    """Discard failed and unusable launches, so that the next sweep repeats them."""
    from castmates.english import counted
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless
    from castmates.results.traces import forget_failed as forget_failed_traces

    folder = load(study).results
    blocks = 0
    for reason, place in forget_useless(folder):
        typer.echo(f"discarded ({reason}): {place}")
        blocks += 1
    typer.echo(f"{counted(blocks, 'block')} discarded in {folder}")
    for what, discarded in (("profile launch", forget_failed(folder)), ("trace", forget_failed_traces(folder))):
        found = 0
        for reason, place in discarded:
            typer.echo(f"discarded ({reason}): {place}")
            found += 1
        if found:
            typer.echo(f"{counted(found, what)} discarded in {folder}")
