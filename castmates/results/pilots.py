"""Reads what the pilot of a study left: in a folder beside the study's."""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import mapping_of, understanding
from castmates.results.folder import StudyFolder
from castmates.study.model import Study
from castmates.study.rounds import Spread


def pilot_name(study: Study) -> str:
    """The name of the pilot as a study."""
    return f"{study.name}-pilot"


def pilot_folder(study: Study) -> StudyFolder:
    """Where the pilot of this study has its launches and its proposal."""
    return StudyFolder.of(pilot_name(study))


def with_rounds_of_pilot(study: Study, study_file: Path) -> Study:
    """The study with a number of rounds in place of `pilot`."""
    if study.budget.rounds != "pilot":
        return study
    file = pilot_folder(study).pilot_file
    if not file.exists():
        raise CastmatesError(
            f"{study_file}: 'budget.rounds' is pilot, but there is no {file}; run `castmates plan {study_file} "
            f"--pilot`, or "
            "write a number of rounds."
        )
    with understanding(file, "what a pilot leaves", f"run `castmates plan {study_file} --pilot` again"):
        rounds = int(mapping_of(file)["rounds"])
    return study.model_copy(update={"budget": study.budget.model_copy(update={"rounds": rounds})})


def read_spreads(study: Study) -> dict[str, Spread]:
    """What the pilot found of the spread of each mix, by the mixes' identities; nothing where there was none."""
    file = pilot_folder(study).pilot_file
    if not file.is_file():
        return {}
    with understanding(file, "what a pilot leaves", "run `castmates plan --pilot` again"):
        return {identity: Spread(**spread) for identity, spread in mapping_of(file)["mixes"].items()}
