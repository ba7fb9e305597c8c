"""One module knows what lies where in results/<study>."""

import re
from pathlib import Path

import pytest

from castmates.results.columns.launch import table_file
from castmates.results.confirming import folder_of, launch_files, study_files
from castmates.results.folder import StudyFolder
from tests.unit.windows_maker import cohort, mix, plan

ROOT = Path(__file__).parents[2]
# A name of a file of ours, or a folder of ours joined to a path, written out.
SPELLED = re.compile(
    r"""["'/](?:launch|plan|machine|pilot)\.json["']"""
    r"""|/ f?["'](?:launches|tables|figures|looks|mixes|bundles|confirm)\b"""
    r"""|["'](?:launches|tables|figures|looks|mixes|bundles|confirm)/["'{*]"""
)
KNOWS = "results/"
# The folders of papers and hardware days have names that are the same. What the report reads still goes to `results/`.
OTHERS = ("report/paper/", "report/results.py", "hardware_day/")


@pytest.mark.parametrize(
    "line",
    [
        'folder / "plan.json"',
        'results.glob("launches/*/*/launch.json")',
        'folder / "launches" / launch.path',
        'place / f"looks/{number}.json"',
        'f"launches/{cohort}/{number}"',
    ],
)
def test_a_spelled_path_is_noticed(line):
    assert SPELLED.search(line)


def test_nobody_else_spells_the_paths_of_results():
    package = ROOT / "castmates"
    modules = [*package.rglob("*.py"), *(ROOT / "scripts").glob("*.py")]
    files = [file for file in modules if not file.is_relative_to(package / KNOWS)]
    spelled = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        if not file.relative_to(ROOT / file.relative_to(ROOT).parts[0]).as_posix().startswith(OTHERS)
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if SPELLED.search(line)
    ]
    assert not spelled, "\n".join(spelled)


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "results" / "example")


def measure(folder, launch):
    file = folder.record_file(launch)
    file.parent.mkdir(parents=True)
    file.write_text("{}")


def test_a_launch_is_measured_when_its_record_is_there(folder):
    planned = plan([cohort("c", mix("x@0", "a@1"))], launches=3)
    measure(folder, planned.launches[1])
    (folder.launch("c/1") / table_file("windows")).parent.mkdir()
    (folder.launch("c/1") / table_file("windows")).touch()
    assert folder.measured(planned).launches == planned.launches[1:2]
    assert folder.places(planned) == [folder.path / "launches/c" / number for number in "123"]


def test_every_cohort_is_there_once_in_the_order_of_the_launches():
    planned = plan([cohort("d", mix("x@0", "a@1")), cohort("c", mix("x@0", "b@1"))], launches=2)
    assert [each.id for each in planned.cohorts] == ["d", "c"]


def test_confirming_studies_are_found_with_their_launches(folder):
    assert study_files(folder) == []
    file = folder.confirming_file("example-confirm-1")
    file.parent.mkdir(parents=True)
    file.touch()
    assert study_files(folder) == [file]
    fresh = folder_of(file, folder)
    assert fresh.path == folder.path.with_name("example-confirm-1")
    measure(fresh, plan([cohort("c", mix("x@0", "a@1"))], launches=1).launches[0])
    assert launch_files(folder) == [f"{fresh}/launches/c/1/{name}" for name in ("launch.json", "windows.parquet")]
