"""Reads the records of a study's launches, and discards launches that are of no use to the analysis."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.files import Unreadable, bytes_of, mapping_in, mapping_of, regular, replace_text, understanding, writing
from castmates.results.columns.launch import DIGESTS, LAUNCH_TABLES, RECORD, table_file
from castmates.results.folder import StudyFolder
from castmates.study.reasons import ReasonKind

Record = Mapping[str, Any]
FROM_OTHERS = (ReasonKind.FOREIGN_LOAD, ReasonKind.NEIGHBOURS, ReasonKind.FOREIGN_TRAFFIC, ReasonKind.STEAL)
ALIKE = ("cohort", "design")  # of `spec`: each launch of a cohort repeats them
LONGEST_HEAD = 1 << 16  # bytes
NEARLY_ALL = 0.9  # of the slices of a launch
REUSED = "reused"  # key of a launch that another study measured: where, and when
MEASURED, FAILED, BROKEN = "measured", "failed", "unreadable"  # the status of a launch; BROKEN stands in no file


def table_digests(folder: Path) -> dict[str, str] | None:
    """The digests of a launch's tables, by their files; None where its record has none, or is not there."""
    try:
        with regular(folder / RECORD) as opened:
            return _digests(opened.readline(LONGEST_HEAD).rstrip(b"\n"))
    except FileNotFoundError:
        return None


def read_record(file: Path) -> dict[str, Any]:
    """The record of a launch, which the launch writes last."""
    with understanding(file, "the record of a launch", f"remove {file.parent} to have the launch measured again"):
        content = bytes_of(file)
        head, newline, rest = content.partition(b"\n")
        digests = _digests(head)
        if digests and digests.get(RECORD) != hashlib.sha256(newline + rest).hexdigest():
            raise Unreadable("its bytes are not those that were written")
        record = mapping_in(content)
        record.pop(DIGESTS, None)
        if record.get("status", MEASURED) not in (MEASURED, FAILED):
            raise Unreadable(f"its status is '{record['status']}'")
        spec = record.get("spec", {})
        if not isinstance(spec, dict) or not isinstance(spec.get("cohort", {}), dict):
            raise Unreadable("its 'spec' does not describe a launch")
        return record


def record_or_why(file: Path) -> dict[str, Any]:
    """The same; of a file that is no record, one of a launch that is of no use, which says why."""
    try:
        return read_record(file)
    except CastmatesError as problem:
        return {"status": BROKEN, "reason": str(problem)}


def _digests(head: bytes) -> dict[str, str] | None:
    """What stands in the first line; a record that was not written by a launch, such as a made up one, has none.

    The comma tells them apart, not the key: a key with a flipped bit would leave the launch without any digest.
    """
    if not head.endswith(b","):
        return None
    return dict(mapping_in(head.removesuffix(b",") + b"}")[DIGESTS])


def read_json(file: Path) -> dict[str, Any]:
    """The content of a file that a study may lack; nothing where it is not there."""
    if not file.exists():
        return {}
    with understanding(file, "JSON that Castmates wrote", "remove it and make it again"):
        return mapping_of(file)


def useless(record: Record) -> str:
    """Why a launch gives the analysis little or nothing ("failed", "no clean round"), or ""."""
    if record.get("status") in (FAILED, BROKEN):
        return str(record["status"])
    return "" if record.get("rounds") else "no clean round"


def too_busy(records: Sequence[Record]) -> bool:
    """Whether none of these launches gave anything, each mostly because other programs or guests ran."""
    return bool(records) and all(useless(record) == "no clean round" and _is_busy(record) for record in records)


def mostly_busy(record: Record) -> bool:
    """Whether others spoilt nearly all of a launch, so that no second one is needed to call the machine busy."""
    ledger = record.get("ledger", {})
    slices, rejected = (sum(ledger.get(name, {}).values()) for name in ("slices", "slices_rejected"))
    return bool(slices) and rejected >= NEARLY_ALL * slices and too_busy([record])


def _is_busy(record: Record) -> bool:
    because = record.get("ledger", {}).get("slices_because", {})
    counts = {kind: sum(scenes.values()) for kind, scenes in because.items()}
    return max(counts, key=lambda kind: counts[kind], default="") in FROM_OTHERS


def forget_useless(folder: StudyFolder, others: Mapping[str, str] | None = None) -> Iterator[tuple[str, Path]]:
    """Remove the launches that give little or nothing, and `others`, by their paths; why and where each of them was."""
    refuse_links(folder)
    for file in folder.record_files():
        if reason := useless(record_or_why(file)) or (others or {}).get(f"{file.parts[-3]}/{file.parts[-2]}"):
            try:
                shutil.rmtree(file.parent)
            except OSError as error:
                raise CastmatesError(
                    f"{file.parent} cannot be removed ({error.strerror}): give write access there, and run the same "
                    "command again."
                ) from None
            yield reason, file.parent


class Records(Sequence[Record]):
    """The record of each launch, in the order of the files: read when the first is asked for.

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


# Links in the folder of a study are refused: Castmates makes none, and what is written through one lands elsewhere.


def refuse_links(results: StudyFolder) -> None:
    """Raise an error that names a link inside the folder; the folder itself may be one."""
    if link := next(_links(results.path), None):
        raise CastmatesError(
            f"{link} is a link (to {link.readlink()}), which Castmates did not make, and through which it would read "
            "or write what does not belong to these results; remove it, or put what it leads to in its place."
        )


def _links(folder: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            yield from _links(Path(entry.path))


# Launches whose files cannot be used, such as one that has lost a table: they are measured again.

TOLD = 3
TABLES = frozenset(map(table_file, LAUNCH_TABLES))


def lacking(folder: Path | str) -> str:
    """A table of a launch that is not in its folder, "" without any; one look at it, as there are thousands."""
    with os.scandir(folder) as entries:
        return min(TABLES.difference(entry.name for entry in entries if entry.is_file()), default="")


def torn_words(torn: Mapping[str, str]) -> list[str]:
    """What is said of them: why, of the first ones."""
    if not torn:
        return []
    head = f"{counted(len(torn), 'launch')} cannot be used; the next sweep measures damaged ones again:"
    return [head, *list(torn.values())[:TOLD]]


def remember_torn(folder: StudyFolder, torn: Collection[str]) -> Path:
    """Write down which launches are torn: the note is newer than their records, so that Snakemake replaces these."""
    file = folder.torn_file
    with writing(file):
        replace_text(file, json.dumps(sorted(torn), indent=1) + "\n")
    return file
