"""The tables of all launches of a study, gathered in bundles while it is measured: thousands of files are slow."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from castmates.errors import CastmatesError
from castmates.files import ODD, replace, replace_text, sha256_of, why
from castmates.results import launch_tables
from castmates.results.bundle_names import LIST, RECORDS, RecordReader, bundle_list, bundles, records_text
from castmates.results.columns.launch import DIGESTS, LAUNCH_TABLES, RECORD, WINDOWS, table_file
from castmates.results.folder import StudyFolder
from castmates.results.records import BROKEN, lacking
from castmates.study.plan_text import Common
from castmates.study.spec import PROTOCOL, Launch

if TYPE_CHECKING:
    import pandas as pd

from castmates.results.plans import analysed
from castmates.study.spec import Plan


def gather_bundle(places: Sequence[Path], folder: Path) -> None:
    """Write each table of the launches in these folders into one file, and last the list of the launches."""
    for name in LAUNCH_TABLES:
        replace(folder / table_file(name), partial(launch_tables.gather, places, name))
    replace_text(folder / RECORDS, records_text(places))
    files = [RECORDS, *map(table_file, LAUNCH_TABLES)]
    about = {
        "launches": [_path(place) for place in places],
        DIGESTS: {name: sha256_of(folder / name) for name in files},
    }
    replace_text(folder / LIST, json.dumps(about, indent=1) + "\n")


@dataclass(frozen=True)
class StudyLaunches:
    """The measured launches of a study, by the folders that they lie in."""

    folder: StudyFolder
    places: Sequence[Path]

    def read(self, name: str, columns: Sequence[str] | None = None, categories: Sequence[str] = ()) -> "pd.DataFrame":
        """One table of all launches, in the order of the launches."""
        if not self._bundles:
            return launch_tables.read(self.places, name, columns, categories)
        return launch_tables.in_order_of(self.places, launch_tables.read(self._bundles, name, columns, categories))

    def windows(self) -> "pd.DataFrame":
        """All windows, with the columns of the data contract."""
        return self.read("windows", list(WINDOWS))

    def parts(
        self, name: str, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
    ) -> Iterator["pd.DataFrame"]:
        """The same rows, some whole launches at a time: bundle by bundle, where there are any."""
        if not self._bundles:
            return launch_tables.parts(self.places, name, columns, categories=categories)
        return launch_tables.parts(self._bundles, name, columns, launches=1, categories=categories)

    def together(self) -> list[Sequence[Path]]:
        """Folders to read together, for those who want several tables of the same launches at a time."""
        if self._bundles:
            return [[folder] for folder in self._bundles]
        size = launch_tables.LAUNCHES_AT_A_TIME
        return [self.places[begin : begin + size] for begin in range(0, len(self.places), size)]

    @cached_property
    def _bundles(self) -> list[Path]:
        """The folders of the bundles; none where these are not of just these launches, as after one was discarded."""
        expected = bundles(map(_path, self.places))
        folders = {name: self.folder.bundle(name) for name in expected}
        return list(folders.values()) if all(_listed(folders[name]) == set(expected[name]) for name in expected) else []


def _listed(folder: Path) -> set[str]:
    """The launches that a bundle has; none where a table is missing, which would count as one without rows."""
    if not all((folder / table_file(name)).is_file() for name in LAUNCH_TABLES):
        return set()
    launches = bundle_list(folder).get("launches")
    return set(map(str, launches)) if isinstance(launches, list) else set()


def _path(place: Path) -> str:
    """The path of the launch that lies in this folder."""
    return f"{place.parts[-2]}/{place.parts[-1]}"


# The launches that are measured, as their records describe them, and those whose files cannot be used.


class Found(NamedTuple):
    """What lies in the folders of a study's launches."""

    measured: list[Launch]  # failed ones too, those of another protocol not
    torn: dict[str, str]  # by the paths of others: why they are measured again


def found_launches(folder: StudyFolder, study: str = "") -> Found:
    """All launches that have a record; where `study` is given, of the study of this name."""
    found, common, records = Found([], {}), Common(), RecordReader(folder)
    for path in folder.measured_paths():
        try:
            found.measured.extend(_measured(folder, path, records, common, study))
        except CastmatesError as problem:
            found.torn[path] = str(problem)
    return found


def _measured(folder: StudyFolder, path: str, records: RecordReader, common: Common, study: str) -> Iterator[Launch]:
    """The launch of this path; an error says why its files cannot be used.

    A record without its tables counts for nothing: the launch would be started again, with the commands of the record.
    """
    place = folder.launch(path)
    try:
        table = lacking(place)
    except OSError as problem:
        raise CastmatesError(f"{place} cannot be read: {why(problem)}.") from None
    if table:
        raise CastmatesError(f"{place}: {table} is not there.")
    file = place / RECORD
    record = records.read(file)
    if record.get("status") == BROKEN:
        raise CastmatesError(str(record["reason"]))
    spec = record.get("spec", {})
    if spec.get("cohort", {}).get("protocol", PROTOCOL) != PROTOCOL:
        return
    try:
        launch = common.launch_of(spec)
    except ODD:
        raise CastmatesError(f"{file}: its 'spec' does not describe a launch of this version.") from None
    if launch.path != path or (study and launch.study != study):
        raise CastmatesError(f"{file}: this is the record of the launch {launch.path} of the study {launch.study}.")
    yield launch


# The tables of some measured launches -> one file each, because thousands of small files are slow to read.


def write_bundle(plan: Plan, folder: StudyFolder, name: str, output: Path) -> None:
    """Gather the tables of a bundle's launches."""
    paths = bundles(launch.path for launch in analysed(plan, folder).launches)[name]
    gather_bundle([folder.launch(path) for path in paths], output)
