"""Reads the records of a study's blocks, and discards blocks that are of no use to the analysis."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.links import refuse_links

Record = Mapping[str, Any]
FROM_OTHERS = ("foreign load", "neighbours", "foreign traffic", "steal")  # reasons of the ledger
ALIKE = ("company", "design")  # of `spec`: each block of a company repeats them


def read_record(file: Path) -> dict[str, Any]:
    """The record of a block, which the launch writes last."""
    try:
        record = json.loads(file.read_bytes())
        if not isinstance(record, dict):
            raise ValueError("no mapping")
    except (OSError, ValueError) as problem:
        raise no_record(file, problem) from None
    return record


def read_json(file: Path) -> dict[str, Any]:
    """The content of a file that a study may lack; nothing where it is not there."""
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise CastmatesError(f"{file}: this cannot be read as JSON ({problem}); remove it and make it again.") from None
    return content if isinstance(content, dict) else {}


def useless(record: Record) -> str:
    """Why a block gives the analysis little or nothing ("failed", "no clean round"), or ""."""
    if record.get("status") == "failed":
        return "failed"
    return "" if record.get("rounds") else "no clean round"


def too_busy(records: Sequence[Record]) -> bool:
    """Whether none of these launches gave anything, each mostly because other programs or guests ran."""
    return bool(records) and all(useless(record) == "no clean round" and _is_busy(record) for record in records)


def _is_busy(record: Record) -> bool:
    because = record.get("ledger", {}).get("slices_because", {})
    counts = {kind: sum(scenes.values()) for kind, scenes in because.items()}
    return max(counts, key=lambda kind: counts[kind], default="") in FROM_OTHERS


def forget_useless(folder: StudyFolder) -> Iterator[tuple[str, Path]]:
    """Remove the blocks that give little or nothing; why and where each of them was."""
    refuse_links(folder)
    for file in folder.record_files():
        if reason := useless(read_record(file)):
            try:
                shutil.rmtree(file.parent)
            except OSError as error:
                raise CastmatesError(
                    f"{file.parent} cannot be removed ({error.strerror}): give write access there, and run the same "
                    "command again."
                ) from None
            yield reason, file.parent


def no_record(file: Path, problem: Exception) -> CastmatesError:
    """The sentence for a file that should be the record of a block."""
    return CastmatesError(
        f"{file}: this is not the record of a block ({type(problem).__name__}); remove its folder {file.parent} to "
        "have the block measured again."
    )


class Records(Sequence[Record]):
    """The record of each block, in the order of the files: read when the first is asked for.

    What thousands of records have in common is held once.
    """

    def __init__(self, files: Sequence[Path], read: Callable[[Path], Record]) -> None:
        self._files, self._read_one = files, read

    @cached_property
    def _read(self) -> list[Record]:
        known: dict[str, Any] = {}
        return [_shared(self._read_one(file), known) for file in self._files]

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._read)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        return self._read[place]


def _shared(record: Record, known: dict[str, Any]) -> Record:
    """The record, with those parts that the record before had too instead of its own copies."""

    def once(key: str, value: object) -> object:
        if known.get(key) != value:
            known[key] = value
        return known[key]

    spec = record.get("spec")
    if isinstance(spec, dict):
        spec |= {key: once(f"spec.{key}", spec[key]) for key in ALIKE if key in spec}
    return {
        key: once(key, value) if isinstance(value, dict) and key != "spec" else value for key, value in record.items()
    }
