"""Which study is meant where none is named, and how commands name it."""

import shlex
from pathlib import Path

DEFAULT_STUDY = Path("config/config.yaml")
OWN_STUDY = Path("study.yaml")  # what `castmates init` writes


def default_study() -> Path:
    """The study of a folder when none is named."""
    return OWN_STUDY if OWN_STUDY.is_file() and not DEFAULT_STUDY.is_file() else DEFAULT_STUDY


def study_argument(file: Path | str) -> str:
    """The study as an argument of a command: "" where it is found without being named."""
    return "" if Path(file) == default_study() else f" {shlex.quote(str(file))}"


def retry_command(file: Path | str) -> str:
    """What discards launches that are of no use, and measures them again."""
    return f"castmates sweep{study_argument(file) if str(file) else ' STUDY.yaml'} --retry"
