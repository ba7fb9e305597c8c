"""Reads what was decided on the rounds of a study's companies."""

import json
from collections.abc import Iterator
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.study.decisions import Decision
from castmates.study.spec import PROTOCOL


def read_decisions(folder: StudyFolder) -> list[Decision]:
    """What was decided, company by company; what was decided for another way of measuring does not count."""
    return [decision for decision in _there(folder) if decision.protocol == PROTOCOL]


def decided_rounds(folder: StudyFolder) -> dict[str, int]:
    """The decided numbers, by company."""
    return {decision.company: decision.rounds for decision in read_decisions(folder)}


def _there(folder: StudyFolder) -> Iterator[Decision]:
    anybody = folder.rounds_file("*")
    for file in sorted(anybody.parent.glob(anybody.name)):
        yield _read(file)


def _read(file: Path) -> Decision:
    try:
        decision = Decision(**json.loads(file.read_bytes()))
        if decision.company != file.stem or not isinstance(decision.rounds, int) or decision.rounds < 1:
            raise ValueError("another company, or no rounds")
    except (OSError, ValueError, TypeError) as problem:
        raise CastmatesError(
            f"{file}: this is not what decides on rounds ({type(problem).__name__}); remove it and run the same "
            "command again."
        ) from None
    return decision
