"""The command `castmates retry`: discards blocks that are of no use to the analysis."""

from typing import Annotated

import typer

from castmates.cli.arguments import StudyFile


def retry(
    study: StudyFile,
    changed: Annotated[
        bool, typer.Option("--changed", help="Also launches that were measured otherwise than the study says now.")
    ] = False,
) -> None:
    """Discard failed and unusable launches, so that the next sweep repeats them."""
    from castmates.english import counted
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless
    from castmates.results.traces import forget_failed as forget_failed_traces
    from castmates.study.changed_design import changed_blocks

    project, blocks = load(study), 0
    folder = project.results
    others = changed_blocks(project.study, project.plan().blocks) if changed else {}
    for reason, place in forget_useless(folder, {path: f"measured with {words[0]}" for path, words in others.items()}):
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
