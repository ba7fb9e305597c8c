"""Emptied caches are full again when a stretch begins, however large they are; the runner's own rounds, modelled."""

import json

import pandas as pd
import pytest

from castmates.pipeline.measure_launch import measure_launch
from castmates.runner.rounds.lead_in import PASSES
from tests.unit.modelled.makers import STUDY, project_of

NO_NOISE = "noise: {window: 0%, scene: 0%, launch: 0%, drift: 0%}"


def played(tmp_path, monkeypatch, way, chase):
    """A pointer chase under its part of a large cache, in slices of 65 ms: a record, its windows and its slices."""
    monkeypatch.chdir(tmp_path)
    text = (
        STUDY.replace("[ranking]", "[chase]").replace("settle: 0.1", "settle: 0.005")
        + "cache: {sweeps: [{split: 8}]}\n"
        + f"model: {{ways: 15, way_size: {way}, {NO_NOISE}}}\n"
        + "workloads: {chase: {unit: load, model: {compute: 1.0e-6, accesses: 1000, units: 1000, "
        + f"reuse: [{{size: {chase}, share: 100%}}]}}}}}}\n"
    )
    plan = project_of(tmp_path, text).plan()
    measure_launch(plan, plan.launches[0].path, tmp_path / "out", tmp_path)
    record = json.loads((tmp_path / "out/launch.json").read_text())
    tables = (pd.read_parquet(tmp_path / f"out/{name}.parquet") for name in ("windows", "slices"))
    return record, *(table[table["scene"].str.endswith("@split-8")] for table in tables)


@pytest.mark.landing
def test_an_emptied_cache_is_full_again_in_the_first_cycle(tmp_path, monkeypatch):
    """It takes a chase over half of 480 MiB half a second, and its first cycle was four times slower than the last."""
    record, windows, slices = played(tmp_path, monkeypatch, "32 MiB", "240 MiB")
    lead = slices[(slices["role"] == "lead") & (slices["round"] == 1)]
    by_cycle = lead.groupby("cycle")["rate"].mean()
    assert len(by_cycle) > 2
    assert by_cycle[1] == pytest.approx(by_cycle.iloc[-1], rel=0.02)
    assert windows["lead_in_passes"].between(3, PASSES - 1).all()
    assert not windows["not_steady"].any()
    assert record["eviction"]["not_steady"] == 0
    assert record["eviction"]["lead_in_passes"] > 2 * record["eviction"]["times"]


def test_a_cache_that_is_not_full_in_time_is_flagged(tmp_path, monkeypatch):
    record, windows, slices = played(tmp_path, monkeypatch, "1 GiB", "7.5 GiB")
    first = windows[windows["round"] == 1]
    assert set(first["lead_in_passes"]) == {PASSES}
    assert first["not_steady"].all()
    by_cycle = slices[(slices["role"] == "lead") & (slices["round"] == 1)].groupby("cycle")["rate"].mean()
    assert by_cycle[1] < 0.9 * by_cycle.iloc[-1]  # so the flag is right
    assert first["reasons"].str.startswith("still filling: ").all()
    assert record["eviction"]["not_steady"] >= 1
