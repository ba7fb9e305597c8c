"""Records out of bundles are the launches' own, fall back to those, and give the same plan and fingerprints."""

import json
import os

import pytest

from castmates.results.bundle_names import RECORDS, RecordReader
from castmates.results.bundles import gather_bundle
from castmates.results.columns.launch import LAUNCH_TABLES, RECORD, WINDOWS, table_file
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.records import lacking, read_record, remember_torn

COMMON = {"spec": {"cohort": {"id": "c", "members": [1, 2]}, "number": 1, "seed": 5}, "hardware": {"a": {"b": "c"}}}


@pytest.fixture
def folder(tmp_path):
    """Three launches of a cohort, gathered into one bundle."""
    folder = StudyFolder(tmp_path)
    for number in (1, 2, 3):
        place = folder.launch(f"c/{number}")
        place.mkdir(parents=True)
        frame([{name: "a" if kind == "str" else number for name, kind in WINDOWS.items()}], WINDOWS).to_parquet(
            place / "windows.parquet", index=False
        )
        record = {**COMMON, "costs": {"logs": [number]}, "status": "measured", "windows": number}
        record["spec"] = {**COMMON["spec"], "number": number}
        (place / RECORD).write_text(json.dumps(record, sort_keys=True))
    gather_bundle([folder.launch(f"c/{number}") for number in (1, 2, 3)], folder.bundle("1"))
    return folder


def records_of(folder):
    return [folder.launch(f"c/{number}") / RECORD for number in (1, 2, 3)]


def test_bundled_records_are_the_launches_own_and_share_what_they_have_in_common(folder):
    reader = RecordReader(folder)
    found = [reader.read(file) for file in records_of(folder)]
    assert json.dumps(found) == json.dumps([read_record(file) for file in records_of(folder)])
    first, second, _ = found
    assert first["spec"]["cohort"] is second["spec"]["cohort"]
    assert first["hardware"] is second["hardware"]
    assert (folder.bundle("1") / RECORDS).read_text().count("members") == 1


def test_a_record_that_was_written_again_is_read_itself(folder):
    file = records_of(folder)[1]
    state = file.stat()
    file.write_text(file.read_text().replace("measured", "failed"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert [RecordReader(folder).read(each)["status"] for each in records_of(folder)] == [
        "measured", "failed", "measured",
    ]  # fmt: skip


def test_a_record_that_was_replaced_within_the_same_tick_is_known_by_its_length(folder):
    file = records_of(folder)[1]
    state = file.stat()
    file.write_text(file.read_text().replace("measured", "failed"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert RecordReader(folder).read(file)["status"] == "failed"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"common": {}, "launches": {}}', '{"common": [], "launches": {"c/1": 7}}']
)
def test_a_bundle_that_says_something_else_is_not_believed(folder, text):
    (folder.bundle("1") / RECORDS).write_text(text)
    found = [RecordReader(folder).read(file) for file in records_of(folder)]
    assert found == [read_record(file) for file in records_of(folder)]


def test_a_launch_that_lost_a_table_is_torn_and_noted_later_than_its_record(folder):
    for name in LAUNCH_TABLES:
        for number in (1, 2):
            (folder.launch(f"c/{number}") / table_file(name)).touch()
    (folder.launch("c/2") / "layers.parquet").unlink()
    assert [lacking(file.parent) for file in records_of(folder)] == ["", "layers.parquet", "counters.parquet"]
    torn = ["c/2"]
    note = remember_torn(folder, torn)
    assert json.loads(note.read_text()) == ["c/2"]
    before = note.stat().st_mtime_ns
    assert remember_torn(folder, torn).stat().st_mtime_ns > before  # written anew, whatever it said
