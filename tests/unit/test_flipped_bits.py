"""A bit that flips in the files of a launch or a bundle is told, or changes nothing: no number changes in silence.

No flip is known to the code that is tested: they are drawn over all bytes of the files that a launch really left.
"""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

from castmates.errors import CastmatesError
from castmates.pipeline.measure_launch import measure_launch
from castmates.results import launch_tables
from castmates.results.bundle_names import FILES, RecordReader
from castmates.results.bundles import StudyLaunches, found_launches, gather_bundle
from castmates.results.columns.launch import LAUNCH_TABLES, RECORD, table_file
from castmates.results.folder import StudyFolder
from castmates.results.records import read_record, table_digests
from tests.seeds import SEED
from tests.unit.modelled.makers import project_of

FLIPS = 1200
STUDY = """
name: example
platform: modelled
leads: [ranking]
antagonists: [flood]
controls: null
budget: {launches: 2, rounds: 1, spare_rounds: 0, window: 0.1, settle: 0.05}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two launches that were measured, and the bundle of both."""
    folder = tmp_path_factory.mktemp("example")
    plan = project_of(folder, STUDY).plan()
    results = StudyFolder(folder)
    for launch in plan.launches:
        measure_launch(plan, launch.path, results.launch(launch.path), folder / "cache")
    return results, [launch.path for launch in plan.launches]


def contents(results, paths, name):
    """What the analysis reads of the launches: a table, or with the name of a file of records, records and specs."""
    if name in LAUNCH_TABLES:
        return StudyLaunches(results, [results.launch(path) for path in paths]).read(name)
    reader = RecordReader(results)
    return [reader.read(results.launch(path) / RECORD) for path in paths], found_launches(results).measured


def is_same(before, after):
    try:
        if isinstance(before, tuple):
            assert before == after
        else:
            assert_frame_equal(before, after, check_exact=True)
    except AssertionError:
        return False
    return True


def outcomes(results, paths, files, draws):
    """How many flips were told, and which changed what is read in silence."""
    told, silent = 0, []
    clean = {file: contents(results, paths, file.stem) for file in files}
    for number in range(FLIPS):
        file = files[number % len(files)]
        content, state = file.read_bytes(), file.stat()
        bit = draws.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        write(file, bytes(flipped), state)
        try:
            found = contents(results, paths, file.stem)
            if isinstance(found, tuple) and [each["status"] for each in found[0]] != ["measured"] * len(paths):
                told += 1
                assert len(found[1]) < len(paths), "a launch whose record is damaged does not count as measured"
            elif not is_same(clean[file], found):
                silent.append((file.name, bit))
        except CastmatesError as sentence:
            told += 1
            assert f"remove {file.parent} to have" in str(sentence)  # noqa: PT017 (most flips, not all, are told so)
        finally:
            write(file, content, state)
    return told, silent


def write(file: Path, content: bytes, state: os.stat_result) -> None:
    """As a disk changes a file: its time stays."""
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    launch_tables._digest.cache_clear()


def test_of_a_launch(study):
    results, paths = study
    place = results.launch(paths[0])
    files = [place / name for name in (RECORD, *map(table_file, LAUNCH_TABLES))]
    told, silent = outcomes(results, paths, files, random.Random(SEED))
    assert not silent
    assert told > 0.9 * FLIPS


def test_of_each_bit_of_the_digests(study):
    """They guard all else: a record without any would be taken for one that never had them."""
    results, paths = study
    file = results.launch(paths[0]) / RECORD
    content, state, clean = file.read_bytes(), file.stat(), table_digests(file.parent)
    try:
        for bit in range(8 * (content.index(b"\n") + 1)):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            write(file, bytes(flipped), state)
            with suppress(CastmatesError):
                read_record(file)
                assert table_digests(file.parent) not in (None, clean)  # the table that it is of is then refused
    finally:
        write(file, content, state)


def test_of_a_bundle(study):
    results, paths = study
    bundle = results.bundle("1")
    gather_bundle([results.launch(path) for path in paths], bundle)
    files = [bundle / name for name in FILES]
    told, silent = outcomes(results, paths, files, random.Random(SEED + 1))
    assert not silent
    assert told > 0.6 * FLIPS  # of lists and records that are damaged, the launches' own are read
