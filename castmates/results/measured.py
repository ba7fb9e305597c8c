"""The launches that are measured, as their records describe them, and those whose files cannot be used."""

from collections.abc import Iterator
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.files import ODD, why
from castmates.results.bundled_records import RecordReader
from castmates.results.columns.launch import RECORD
from castmates.results.folder import StudyFolder
from castmates.results.records import BROKEN
from castmates.results.torn import lacking
from castmates.study.plan_text import Common
from castmates.study.spec import PROTOCOL, Launch


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
