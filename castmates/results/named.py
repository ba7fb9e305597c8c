"""Which study is meant where none is named, and how commands name it."""

import shlex
from pathlib import Path

from castmates.files import MOST_WRITTEN, bytes_of
from castmates.results.folder import StudyFolder

DEFAULT_STUDY = Path("config/config.yaml")
OWN_STUDY = Path("study.yaml")  # what `castmates init` writes

# Where the studies of a project lie: the workflow's own, those that `init` and `measure` write, and
# those that confirm a partition, replay or rehearse a study, or try the advice of a finding.
OWN = ("*.yaml", "config/*.yaml", "config/studies/*.yaml", "studies/*.yaml")
EVERY = StudyFolder.of("*")
STUDY_FILES = (
    *OWN,
    str(EVERY.confirming_file("*")),
    str(EVERY.replay_study_file),
    str(EVERY.rehearsal_study_file),
    str(EVERY.trial_study_file("*")),
)


def default_study() -> Path:
    """The study of a folder when none is named."""
    return OWN_STUDY if OWN_STUDY.is_file() and not DEFAULT_STUDY.is_file() else DEFAULT_STUDY


def study_argument(file: Path | str) -> str:
    """The study as an argument of a command: "" where it is found without being named."""
    return "" if Path(file) == default_study() else f" {shlex.quote(str(file))}"


def retry_command(file: Path | str) -> str:
    """What discards launches that are of no use, and measures them again."""
    return f"castmates sweep{study_argument(file) if str(file) else ' STUDY.yaml'} --retry"


def studies_with(name: str) -> list[tuple[Path, str]]:
    """The study files of the project in whose text this name is, with their texts."""
    files = [file for pattern in STUDY_FILES for file in sorted(Path().glob(pattern)) if _is_short(file)]
    texts = ((file, bytes_of(file).decode(errors="replace")) for file in files)
    return [(file, text) for file, text in texts if name in text]


def rules_beside(study_file: Path) -> list[Path]:
    """The files of rules of findings in the folder beside a study."""
    return sorted((study_file.parent / "findings").glob("*.yaml"))


def _is_short(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= MOST_WRITTEN
