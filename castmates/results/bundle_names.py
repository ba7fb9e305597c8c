"""Which bundles gather the tables of a study's launches, and what a bundle's files are called."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from castmates.errors import CastmatesError
from castmates.files import bytes_of, mapping_if_there, mapping_in
from castmates.results.columns.launch import DIGESTS, LAUNCH_TABLES, RECORD, table_file
from castmates.results.folder import StudyFolder
from castmates.results.records import Record, read_record, record_or_why

LIST = "launches.json"  # written last: a bundle without it is not whole
RECORDS = "records.json"  # of its launches
FILES = (LIST, RECORDS, *map(table_file, LAUNCH_TABLES))
LAUNCHES = 200  # of a bundle, about; a study of fewer launches has one


def bundles(paths: Iterable[str]) -> dict[str, list[str]]:
    """By name, the paths (cohort/number) of the launches in each bundle, in their order.

    A bundle has the launches of a few numbers of all cohorts, as they are measured: more launches leave full bundles
    as they are.
    """
    placed = [(cohort, int(number)) for cohort, _, number in (path.rpartition("/") for path in paths)]
    numbers = max(1, LAUNCHES // max(1, len({cohort for cohort, _ in placed})))
    paths_of: dict[int, list[str]] = {}
    for cohort, number in placed:
        paths_of.setdefault((number - 1) // numbers + 1, []).append(f"{cohort}/{number}")
    return {str(name): paths_of[name] for name in sorted(paths_of)}


# The records of a bundle's launches in one file, what they have in common once; and records that are read from there.
#
# The record of a launch (launch.json) stays what counts: a bundled one is taken only while the launch's own file is as
# it was when it was gathered.

SPEC = "spec"
PARTS: Mapping[str, type[list[Any]] | type[dict[str, Any]]] = {"common": list, "launches": dict}
# A record as it is kept: when its file was written and how large it was, its own values, and which common ones it has.
_Kept: TypeAlias = tuple[list[int], dict[str, Any], dict[str, int]]


def records_text(places: Sequence[Path]) -> str:
    """The records of the launches in these folders, as JSON."""
    numbers: dict[str, int] = {}
    kept: dict[str, _Kept] = {}
    for place in places:
        file = place / RECORD
        seen = _seen(file)
        with suppress(CastmatesError):  # whoever needs it reads the file, and gets the error
            own, common = _folded(read_record(file), numbers)
            kept[_path(file)] = (seen, own, common)
    return json.dumps({"common": list(numbers), "launches": kept}, separators=(",", ":")) + "\n"


def _folded(record: Record, numbers: dict[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    """The values of a record that are no mappings, and the numbers of those that are; so for its `spec` too."""
    own, common = _parted(record, "", numbers)
    spec = record.get(SPEC)
    if isinstance(spec, dict):
        own[SPEC], of_spec = _parted(spec, f"{SPEC}.", numbers)
        common.pop(SPEC, None)
        common |= of_spec
    return own, common


def _parted(values: Mapping[str, Any], prefix: str, numbers: dict[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    own: dict[str, Any] = {}
    common: dict[str, int] = {}
    for key, value in values.items():
        if isinstance(value, dict) and f"{prefix}{key}" != SPEC:
            common[prefix + key] = numbers.setdefault(json.dumps(value, separators=(",", ":")), len(numbers))
        else:
            own[key] = value
    return own, common


class RecordReader:
    """Reads the records of a study's launches, out of its bundles where these are up to date."""

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder

    def read(self, file: Path) -> dict[str, Any]:
        """What `record_or_why` reads; what records have in common is one object, which nobody may change."""
        found = self._bundled.get(_path(file))
        if found is not None:
            with suppress(ValueError, TypeError, LookupError):  # written by another version: the launch's own counts
                (seen, own, common), values = found
                if seen == _seen(file):
                    return _whole(own, common, values)
        return record_or_why(file)

    @cached_property
    def _bundled(self) -> dict[str, tuple[_Kept, list[Any]]]:
        """By the path of the launch: its record, and the common values that it refers to."""
        known: dict[str, tuple[_Kept, list[Any]]] = {}
        values: dict[str, Any] = {}  # by their text: cohorts come back in every bundle
        for file in sorted(self._folder.bundle("*").parent.glob(f"*/{RECORDS}")):
            content = _content(file, bundle_list(file.parent))
            for text in content["common"]:
                if text not in values:
                    values[text] = json.loads(text)
            common = [values[text] for text in content["common"]]
            known |= {path: (kept, common) for path, kept in content["launches"].items()}
        return known


def _whole(own: Mapping[str, Any], common: Mapping[str, int], values: Sequence[Any]) -> dict[str, Any]:
    record = dict(own)
    spec = dict(record.get(SPEC, {}))
    for key, number in common.items():
        if key.startswith(f"{SPEC}."):
            spec[key.removeprefix(f"{SPEC}.")] = values[number]
        else:
            record[key] = values[number]
    if SPEC in record:
        record[SPEC] = dict(sorted(spec.items()))
    return dict(sorted(record.items()))  # as it was written


def bundle_list(folder: Path) -> dict[str, Any]:
    """What a bundle lists: its `launches`, and the digests of its files; nothing where it is not whole."""
    return mapping_if_there(folder / LIST)


def _content(file: Path, listed: Mapping[str, Any]) -> dict[str, Any]:
    """No launches where it cannot be used: their own records are there."""
    with suppress(OSError, ValueError, AttributeError):
        text = bytes_of(file)
        if listed.get(DIGESTS, {}).get(file.name) == hashlib.sha256(text).hexdigest():
            content = mapping_in(text)
            if all(isinstance(content.get(key), kind) for key, kind in PARTS.items()):
                return content
    return {key: kind() for key, kind in PARTS.items()}


def _seen(file: Path) -> list[int]:
    try:
        state = os.stat(file)  # noqa: PTH116 (thousands of them)
    except OSError:
        return []
    return [state.st_mtime_ns, state.st_size]


def _path(file: Path) -> str:
    """The path of the launch whose record this is."""
    return f"{file.parts[-3]}/{file.parts[-2]}"
