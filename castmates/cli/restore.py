"""The command `castmates restore`: puts right what killed runs left."""

import typer

from castmates.errors import CastmatesError


def restore() -> None:
    """Put right what killed runs have left: changed knobs, control groups, scratch folders."""
    from castmates.runner.cleanup.restore import restore_everything

    restored = restore_everything()
    for sentence in restored.done or ([] if restored.left else ["nothing to restore"]):
        typer.echo(sentence)
    if restored.left:
        raise CastmatesError("; ".join(restored.left))
