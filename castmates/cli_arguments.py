"""Arguments that several commands of `castmates` take."""

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Argument(help="The study file.", metavar="[STUDY.yaml]")]
DEFAULT_STUDY = Path("config/config.yaml")
