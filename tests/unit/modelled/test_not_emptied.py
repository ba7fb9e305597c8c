"""A cache that could not be emptied, because an administrator keeps the runner's group out of most of its ways."""

import json

import pandas as pd
import pytest

from castmates.pipeline.measure_launch import measure_launch
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.runner.modelled import hardware
from tests.unit.modelled.makers import QUIET, STUDY, SWEEPS, project_of


class Narrowed(FakeResctrl):
    """The default group, in which everybody begins and evictors stay, has four of twelve ways; members go beyond it."""

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.write("schemata", "L3:0=f\n")


@pytest.mark.parametrize(("limit", "valid"), [("", False), ("limits: {left_in_caches: 100%}\n", True)])
def test_windows_after_it_are_rejected(tmp_path, monkeypatch, limit, valid):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hardware, "FakeResctrl", Narrowed)
    sweeps = SWEEPS.replace("{sweeps", "{beyond_site: true, rest: all, sweeps")
    text = STUDY.replace("rounds: 2", "rounds: 1, spare_rounds: 0") + QUIET + sweeps + limit
    plan = project_of(tmp_path, text).plan()
    measure_launch(plan, plan.launches[0].path, tmp_path / "out", tmp_path)
    record = json.loads((tmp_path / "out/launch.json").read_text())
    assert record["eviction"]["left_most"] > 0.5
    windows = pd.read_parquet(tmp_path / "out/windows.parquet")
    said = windows["reasons"].str.contains(
        r"not emptied: members still held \d+\.\d% of the caches before this stretch \(limit 25\.0%\)"
    )
    assert windows["valid"].all() == valid
    assert said.any() != valid
    assert (said == ~windows["valid"]).all()
