"""Reads what was decided on the rounds of a study's cohorts."""

from collections.abc import Iterator
from pathlib import Path

from castmates.files import AGAIN, mapping_of, understanding
from castmates.results.folder import StudyFolder
from castmates.study.decisions import Decision
from castmates.study.spec import PROTOCOL


def read_decisions(folder: StudyFolder) -> list[Decision]:
    """What was decided, cohort by cohort; what was decided for another way of measuring does not count."""
    return [decision for decision in _there(folder) if decision.protocol == PROTOCOL]


def decided_rounds(folder: StudyFolder) -> dict[str, int]:
    """The decided numbers, by cohort."""
    return {decision.cohort: decision.rounds for decision in read_decisions(folder)}


def _there(folder: StudyFolder) -> Iterator[Decision]:
    anybody = folder.rounds_file("*")
    for file in sorted(anybody.parent.glob(anybody.name)):
        yield _read(file)


def _read(file: Path) -> Decision:
    with understanding(file, "what decides on rounds", AGAIN):
        decision = Decision(**mapping_of(file))
        if decision.cohort != file.stem or not isinstance(decision.rounds, int) or decision.rounds < 1:
            raise ValueError("another cohort, or no rounds")
        return decision
