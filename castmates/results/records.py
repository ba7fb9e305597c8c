"""What the blocks of a study say of themselves: read when somebody asks, and what thousands say alike held once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

Record = Mapping[str, Any]
ALIKE = ("company", "design")  # of `spec`: a company is told in each of its blocks


class Records(Sequence[Record]):
    """The block.json of every block, in the order of their files."""

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
    """The record, with those parts that the one before had too instead of its own copies."""

    def one(key: str, value: object) -> object:
        if known.get(key) != value:
            known[key] = value
        return known[key]

    spec = record.get("spec")
    if isinstance(spec, dict):
        spec |= {key: one(f"spec.{key}", spec[key]) for key in ALIKE if key in spec}
    return {
        key: one(key, value) if isinstance(value, dict) and key != "spec" else value for key, value in record.items()
    }
