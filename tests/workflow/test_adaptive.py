"""An adaptive study: looks decide what launches measure, a killed sweep decides the same again, the rest can follow."""

import json
import os
import signal

import pandas as pd
import pytest

import castmates
from benchmarks.common import Report
from benchmarks.studies import describe
from castmates.study.curves import measured_later
from castmates.study.plan_text import plan_of
from tests.waiting import wait_for
from tests.workflow.sweeps import Sweeps

BUDGET = {"adaptive": True, "launches": 4, "batch": 4, "most_launches": 8, "rounds": 1, "window": 0.1, "settle": 0.02,
          "mixes_per_launch": 64, "longest_launch": 3600}  # fmt: skip
STUDY = {
    "platform": "modelled",
    "model": {"ways": 8},
    "antagonists": ["stream"],
    "cache": {"monitor": 0, "sweeps": [{"split": "all"}]},
    "recommend": {"lead_loss": "20%"},
    "budget": BUDGET,
}
CURVES = "results/small/tables/curves.csv"


def looks(sweeps: Sweeps) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(sweeps.results.glob("looks/*.json"))}


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaptive")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    sweeps.write_study(STUDY)
    sweeps.shown = sweeps.sweep(CURVES).stderr
    return sweeps


def test_looks_decide_what_launches_measure_and_everything_shows_it(adaptive):
    first = json.loads(looks(adaptive)["1.json"])
    decided = {cell["partition"]: cell for cell in first["cells"]}
    assert len(decided) < 8, "not all of the grid"
    plan = plan_of((adaptive.results / "plan.json").read_text())
    assert plan.later == measured_later(plan.mixes)
    for path in adaptive.launches():
        record = adaptive.record(path)
        windows = pd.read_parquet(adaptive.results / "launches" / path / "windows.parquet")
        assert set(windows["scene"]) == set(record["scenes"])
    curves = pd.read_csv(adaptive.folder / CURVES)
    assert {"measured", "interpolated"} == set(curves["source"])
    assert set(curves["platform"]) == {"modelled"}
    unmeasured = set(curves.loc[curves["source"] == "interpolated", "partition"])
    for name in ("effects", "windows", "pareto", "sensitivity"):
        table = pd.read_csv(adaptive.results / f"tables/{name}.csv")
        known = table if "launches" not in table else table[table["launches"] > 0]
        assert not unmeasured & set(known["partition"]), f"only measured cells are in {name}"
    adaptive.shown += adaptive.sweep().stderr
    page = (adaptive.results / "report/index.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "% fewer" in page
    assert "cells of curves are interpolated" in page
    assert "hollow with dotted bars: interpolated" in page
    report = Report("The study", "studies")
    describe(report, castmates.load(adaptive.results), None)
    assert "fewer windows than the full grid" in report.run().markdown()
    assert "Look 1:" in adaptive.shown
    assert "% fewer" in adaptive.shown
    assert "measured mixes and partitions have their answer" in adaptive.castmates("show", "--progress")
    adaptive.assert_finished()


def test_a_killed_sweep_decides_the_same_again(adaptive, tmp_path):
    killed = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    killed.write_study(STUDY)
    process = killed.start(CURVES)
    try:
        wait_for(lambda: len(looks(killed)) > 0, "the first look")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert len(looks(killed)) < len(looks(adaptive)) or set(killed.launches()) <= set(adaptive.launches())
    killed.sweep(CURVES)
    assert looks(killed) == looks(adaptive)
    assert set(killed.launches()) == set(adaptive.launches())


def test_the_full_grid_is_completed_and_nothing_is_measured_again(adaptive, tmp_path):
    whole = adaptive.copy(tmp_path / "project")
    before = whole.launches()
    whole.write_study(STUDY | {"budget": BUDGET | {"adaptive": False, "launches": 8}})
    whole.sweep("results/small/tables/effects.csv")
    assert before.items() <= whole.launches().items()
    effects = whole.effects()
    own = effects[
        (effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] != "unmanaged")
    ]
    assert set(own["launches"]) == {8}
    assert len(own) == 7
