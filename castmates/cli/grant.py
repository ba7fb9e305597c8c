"""The command `castmates grant`: what sweeps without root need."""

from typing import Annotated

import typer


def grant(
    user: Annotated[str | None, typer.Option(help="Who runs sweeps; the user who called sudo if left out.")] = None,
    groups: Annotated[int, typer.Option(min=1, max=1000, help="Largest number of groups with separate masks.")] = 6,
    default_group: Annotated[
        bool, typer.Option("--default-group", help="Also the masks of all processes that are in no group.")
    ] = False,
    shell: Annotated[
        int | None, typer.Option(min=2, help="Process id of the shell that starts sweeps; the calling one if left out.")
    ] = None,
    tracing: Annotated[
        bool,
        typer.Option("--tracing", help="Also traces of who wakes and who runs instead: these show all programs here."),
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo all grants instead.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only show what is granted.")] = False,
) -> None:
    """Give a user, once and by root, what sweeps need, so that they run without root; each step is printed."""
    from castmates.grant import grant as steps

    if show:
        steps.show(typer.echo)
    elif undo:
        steps.undo(typer.echo)
    else:
        steps.give(user, groups, default_group, shell, typer.echo, everything_traced=tracing)
