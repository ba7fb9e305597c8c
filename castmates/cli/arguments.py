"""Arguments that several commands of `castmates` take."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.errors import CastmatesError


def _study_file(study: Path) -> Path:
    from castmates.results.find import study_file

    return study_file(study)


HELP = "The study file, or the folder results/<study>."
# What has results, wherever they lie.
Studied = Annotated[Path, typer.Argument(help=HELP, show_default=False)]
# What is planned, measured or changed: the command gets the study's file.
StudyFile = Annotated[Path, typer.Argument(help=HELP, metavar="[STUDY]", callback=_study_file)]
DEFAULT_STUDY = Path("config/config.yaml")
LeadLoss = Annotated[
    str, typer.Option("--lead-loss", help="What the lead may lose, in per cent; the study's own limit if left out.")
]


def limit_of(lead_loss: str) -> float | None:
    """The limit in per cent; None where it was left out."""
    from castmates.study.recommend_keys import percent_of_loss

    try:
        return percent_of_loss(lead_loss) if lead_loss else None
    except ValueError as problem:
        raise CastmatesError(f"--lead-loss is '{lead_loss}', expected {problem}.") from None
