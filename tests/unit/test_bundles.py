"""Bundles hold just the launches that they name, grow at their end, and are read only where they fit the study."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from castmates.errors import CastmatesError
from castmates.results.bundle_names import LAUNCHES, bundles
from castmates.results.bundles import StudyLaunches, gather_bundle
from castmates.results.columns.launch import LAUNCH_TABLES, WINDOWS
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder


@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 20))
def test_every_launch_is_in_one_bundle_and_full_ones_stay_when_launches_are_added(cohorts, numbers, more):
    def study(numbers):
        return [f"c-{cohort}/{number}" for cohort in range(cohorts) for number in range(1, numbers + 1)]

    before, after = bundles(study(numbers)), bundles(study(numbers + more))
    assert sorted(path for paths in before.values() for path in paths) == sorted(study(numbers))
    full = [name for name in before if name != max(before, key=int)]
    assert all(before[name] == after[name] for name in full)
    assert all(len(before[name]) <= max(LAUNCHES, cohorts) for name in before)


@pytest.fixture
def study(tmp_path):
    """Three launches with windows, and their folders."""
    places = []
    for number in (1, 2, 3):
        place = tmp_path / "launches" / "c" / str(number)
        place.mkdir(parents=True)
        row = {name: "a" if kind == "str" else 1 for name, kind in WINDOWS.items()}
        rows = [{**row, "cohort": "c", "launch": number, "window": window} for window in (1, 2)]
        frame(rows, WINDOWS).to_parquet(place / "windows.parquet", index=False)
        places.append(place)
    return StudyLaunches(StudyFolder(tmp_path), places)


def test_bundles_read_like_the_launches(study):
    whole = study.read("windows")
    gather_bundle(study.places, study.folder.bundle("1"))
    assert sorted(file.stem for file in (study.folder.path / "bundles/1").glob("*.parquet")) == sorted(LAUNCH_TABLES)
    bundled = StudyLaunches(study.folder, study.places)
    assert list(bundled.together()) == [[study.folder.path / "bundles" / "1"]]
    assert_frame_equal(bundled.read("windows"), whole)
    backwards = StudyLaunches(study.folder, study.places[::-1])
    assert list(backwards.together()) == list(bundled.together())
    assert backwards.read("windows")["launch"].tolist() == [3, 3, 2, 2, 1, 1]


@pytest.mark.parametrize("listed", [["c/1", "c/2"], ["c/1", "c/2", "c/3", "c/4"], "no list", None])
def test_bundles_of_other_launches_are_not_read(study, listed):
    gather_bundle(study.places[:2], study.folder.bundle("1"))
    file = study.folder.path / "bundles/1/launches.json"
    about = json.loads(file.read_text())
    file.write_text("{" if listed is None else json.dumps(about | {"launches": listed}))
    assert StudyLaunches(study.folder, study.places).read("windows")["launch"].tolist() == [1, 1, 2, 2, 3, 3]


def test_a_bundle_that_lacks_a_table_is_not_read(study):
    bundle = study.folder.path / "bundles" / "1"
    gather_bundle(study.places, bundle)
    assert list(StudyLaunches(study.folder, study.places).together()) == [[bundle]]
    (bundle / "steps.parquet").unlink()
    assert list(StudyLaunches(study.folder, study.places).together()) == [study.places]


def test_a_bundle_that_cannot_be_read_is_named_with_what_to_do(study):
    gather_bundle(study.places, study.folder.bundle("1"))
    (study.folder.path / "bundles/1/windows.parquet").write_text("PAR?")
    with pytest.raises(CastmatesError, match=r"bundles/1 to have its tables gathered again\.$"):
        StudyLaunches(study.folder, study.places).read("windows")


def test_rows_of_several_bundles_come_in_the_order_of_the_launches(tmp_path, monkeypatch):
    monkeypatch.setattr("castmates.results.bundle_names.LAUNCHES", 2)
    places = []
    for cohort in ("d", "c"):
        for number in (1, 2, 3):
            place = tmp_path / "launches" / cohort / str(number)
            place.mkdir(parents=True)
            row = {name: cohort if kind == "str" else number for name, kind in WINDOWS.items()}
            frame([row, row], WINDOWS).to_parquet(place / "windows.parquet", index=False)
            places.append(place)
    plain = StudyLaunches(StudyFolder(tmp_path), places).read("windows")
    for name, paths in bundles(f"{place.parts[-2]}/{place.name}" for place in places).items():
        gather_bundle([tmp_path / "launches" / path for path in paths], StudyFolder(tmp_path).bundle(name))
    bundled = StudyLaunches(StudyFolder(tmp_path), places)
    assert len(list(bundled.together())) == 3
    assert_frame_equal(bundled.read("windows"), plain)
    assert len(list(bundled.parts("windows"))) == 3
