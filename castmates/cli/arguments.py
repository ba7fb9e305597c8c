"""Arguments that several commands of `castmates` take."""

from pathlib import Path
from typing import Annotated

import typer


def _study_file(given: Path) -> Path:
    from castmates.results.find import study_file

    return study_file(given)


HELP = "The study file, or the folder results/<study>."
# What has results, wherever they lie.
Studied = Annotated[Path, typer.Argument(help=HELP, show_default=False)]
# What is planned, measured or changed: the command gets the study's file.
StudyFile = Annotated[Path, typer.Argument(help=HELP, metavar="[STUDY]", callback=_study_file)]
DEFAULT_STUDY = Path("config/config.yaml")
