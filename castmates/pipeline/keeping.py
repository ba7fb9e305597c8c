"""Measured launches are kept: a sweep is refused where Snakemake may run jobs again for other than two reasons."""

from collections.abc import Iterable

from castmates import shipped
from castmates.errors import CastmatesError

KEEPING = {"mtime", "params"}  # as profiles/default has it: a changed specification, a changed table


def refuse_to_forget(triggers: Iterable[object]) -> None:
    """Refuse Snakemake's own choice, by which a new version of the workflow's text would measure everything again."""
    more = sorted({str(trigger) for trigger in triggers} - KEEPING)
    if more:
        raise CastmatesError(
            f"Snakemake would measure launches again for other reasons than a changed study ({', '.join(more)}): add "
            f"--workflow-profile {shipped.profile()} to the command, or --rerun-triggers mtime params."
        )
