"""A record that cannot be used stops nothing but itself: it is named, and its launch is measured again."""

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.pipeline.measure_launch import measure_launch
from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.project import load
from castmates.report.figures.index import figures_of
from castmates.results.bundles import gather_bundle
from castmates.results.columns.launch import RECORD
from castmates.results.folder import StudyFolder
from tests.unit.modelled.makers import STUDY, WORKLOADS

FOLDER = StudyFolder.of("example")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A project whose launches are all measured."""
    place = tmp_path_factory.mktemp("project")
    (place / "workloads").mkdir()
    (place / "workloads/own.yaml").write_text(WORKLOADS)
    (place / "study.yaml").write_text(STUDY.replace("launches: 5", "launches: 3") + "catalogue: workloads\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        plan = load("study.yaml").plan()
        for launch in plan.launches:
            measure_launch(plan, launch.path, FOLDER.launch(launch.path), place / "cache")
    return place


@pytest.fixture
def launches(measured, tmp_path, monkeypatch):
    """The folders of its launches, in a copy."""
    shutil.copytree(measured, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return [file.parent for file in FOLDER.record_files()]


def spec(**changes):
    def write(file):
        record = json.loads(file.read_bytes())
        record.pop("sha256")
        file.write_text(json.dumps(record | {"spec": record["spec"] | changes}))

    return write


def pipe(file):
    file.unlink()
    os.mkfifo(file)


def of_another_launch(file):
    shutil.copy(file.parents[1] / "1" / RECORD, file)


def with_other_digits(file):
    file.write_text(file.read_text().replace('"rounds": 2', '"rounds": 3'))


DAMAGES = {
    **{
        text[:30]: lambda file, text=text: file.write_text(text)
        for text in ("", "{", "[1]", '{"spec": null}', '{"spec": [1]}', '{"spec": {"cohort": "x"}}', '{"spec": {}}',
                     '{"status": "banana"}', '{"status": ["measured"]}', "[" * 100_000, "1" * 5000, "\0" * 100)
    },
    "a cohort alone": spec(cohort={"id": "x"}),
    "another study": spec(study="other"),
    "another number": spec(number=9),
    "half of a character": lambda file: file.write_text('{"status": "\\ud800"}'),
    "latin-1": lambda file: file.write_bytes(b'{"status": "\xe9"}'),
    "another launch": of_another_launch,
    "another digit": with_other_digits,
    "a pipe": pipe,
    "a table that is a pipe": lambda file: pipe(file.with_name("windows.parquet")),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_one_damaged_record(launches, damage):
    damage(launches[1] / RECORD)
    for words in (
        ["plan", "study.yaml"],
        ["show", "study.yaml", "--progress"],
        ["show", "study.yaml", "--progress", "--format", "json"],
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.exception
        assert str(launches[1]) in done.output
    progress = json.loads(done.output)
    assert (progress["launches"]["measured"], progress["missing"]) == (2, [1, 1])

    sweep = PlannedSweep.of(Path("study.yaml"), None, Path("cache"), figures_of)
    path = f"{launches[1].parent.name}/2"
    assert sweep.torn == {path}
    assert list(sweep.paths) == [f"{launches[1].parent.name}/{number}" for number in (1, 2, 3)]


def test_what_is_no_launch_counts_for_nothing(launches):
    """Neither a copied folder nor one whose name is no number; the analysis reads neither."""
    shutil.copytree(launches[0], launches[0].with_name("999"))
    shutil.copytree(launches[0], launches[0].with_name("abc"))
    assert len(load("study.yaml").plan().launches) == 3
    assert not PlannedSweep.of(Path("study.yaml"), None, Path("cache"), figures_of).torn


@pytest.mark.parametrize("number", [999999999, -1, "many", None])
def test_a_remembered_number_of_launches_that_cannot_be(launches, number):
    FOLDER.asked_file.write_text(json.dumps({"launches": number}))
    done = CliRunner().invoke(app, ["show", "study.yaml", "--progress"])
    assert str(done.exception).startswith("results/example/asked.json: 'launches' is ")


def test_a_damaged_record_that_is_gathered_is_read_from_its_bundle(launches):
    """The bundle has it, with a digest: nothing has to be measured again."""
    gather_bundle(launches, FOLDER.bundle("1"))
    state = (launches[1] / RECORD).stat()
    content = bytearray((launches[1] / RECORD).read_bytes())
    content[-100] ^= 1
    (launches[1] / RECORD).write_bytes(content)
    os.utime(launches[1] / RECORD, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert len(load("study.yaml").found().measured) == 3
