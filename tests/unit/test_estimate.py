"""The launches on disk become the study's tables on disk."""

import json

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.pipeline.analyse import Terms, write_tables
from castmates.results.columns.registry import written_by
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.tables import tables_of
from tests.unit.test_controls import TWO, manifest, written


def on_disk(folder):
    def rate(launch, number, scene, member):
        return 1.0 / (3 + number + len(scene))

    windows = written(TWO, rate)
    for launch in TWO.launches:
        home = folder / "launches" / launch.path
        home.mkdir(parents=True)
        own = windows[(windows["cohort"] == launch.cohort.id) & (windows["launch"] == launch.number)]
        # The first launch failed: its tables have columns and no rows.
        (own[:0] if launch == TWO.launches[0] else own).to_parquet(home / "windows.parquet", index=False)
        (home / "launch.json").write_text(json.dumps(manifest(launch)))
    (folder / "plan.json").write_text(TWO.canonical())
    return folder


def write(folder):
    write_tables(read_plan(folder / "plan.json"), StudyFolder(folder), Terms(0.02), folder / "tables")


def test_writes_every_table_twice_and_in_full(tmp_path):
    write(on_disk(tmp_path))
    tables = written_by("analyse", tables_of(TWO, StudyFolder(tmp_path)))
    assert {"effects", "windows", "stamps"} <= tables.keys()
    assert "predictions" not in tables, "the study does not ask for it"
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        *(f"{name}.{kind}" for name in tables for kind in ("csv", "parquet"))
    }
    for name, numbers in (("effects", ["slowdown", "p_value"]), ("windows", ["rate"])):
        csv = pd.read_csv(tmp_path / "tables" / f"{name}.csv")
        parquet = pd.read_parquet(tmp_path / "tables" / f"{name}.parquet")
        assert csv.columns.tolist() == parquet.columns.tolist()
        pd.testing.assert_frame_equal(csv[numbers], parquet[numbers], check_exact=True)
    effects = pd.read_parquet(tmp_path / "tables" / "effects.parquet").set_index(["lead", "role", "baseline"])
    assert effects.loc[("dlrm", "lead", "alone"), "verdict"] == "too few launches"
    assert effects.loc[("bert", "lead", "alone"), "launches"] == 3
    assert pd.read_csv(tmp_path / "tables" / "stamps.csv")["stamp"].tolist() == ["control", "sensitivity"]


def test_what_the_study_ceased_to_ask_for_goes_whichever_rule_wrote_it(tmp_path):
    folder = on_disk(tmp_path)
    (folder / "tables").mkdir()
    for name in ("pareto.csv", "kernels.parquet", "predictions.csv", "own.csv"):
        (folder / "tables" / name).touch()
    write(folder)
    left = {file.name for file in (folder / "tables").iterdir()}
    assert left.isdisjoint(("pareto.csv", "kernels.parquet", "predictions.csv"))
    assert {"own.csv", "effects.csv"} <= left


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("plan.json", "{}", "plan.json: this is not a plan"),
        ("launches/a/1/launch.json", "{", "launch.json: this is not the record of a launch"),
        ("launches/a/1/windows.parquet", "PAR?", "windows.parquet cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path, file, content, sentence):
    on_disk(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(CastmatesError, match=sentence) as caught:
        write(tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("tables/*"))
