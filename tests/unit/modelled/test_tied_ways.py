"""A processor that ties ways, in the model: the kernel shows nothing of it, registers and occupancy do."""

import json

import pandas as pd
import pytest

from castmates.analysis.partitions.held import BEYOND, OTHERWISE, UNCERTAIN
from castmates.pipeline.analyse import what_was_held
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.folder import StudyFolder
from tests.unit.modelled.makers import STUDY, project_of

WAY = 3 * 2**19
CUTTING = "cache: {sweeps: [{split: 10}]}\n"


def played(tmp_path, monkeypatch, model):
    """The plan, and the record and the tables of its first launch."""
    monkeypatch.chdir(tmp_path)
    noise = "noise: {window: 0%, scene: 0%, launch: 0%, drift: 0%}"
    plan = project_of(tmp_path, f"{STUDY}{CUTTING}model: {{ways: 11, {model}{noise}}}\n").plan()
    folder = StudyFolder(tmp_path / "results/example")
    place = folder.record_file(plan.launches[0]).parent
    measure_launch(plan, plan.launches[0].path, place, tmp_path)
    record = json.loads((place / "launch.json").read_text())
    return plan, folder, record, *(pd.read_parquet(place / f"{name}.parquet") for name in ("windows", "samples"))


def occupied(record, windows, samples):
    """What the antagonist held under the partition, in ways."""
    scene = "corun:ranking+flood@split-10"
    rows = windows[(windows["scene"] == scene) & (windows["member"] == "flood@2")]
    assert set(rows["schemata"]) == {"MB:0=100 L3:0=400"}
    own = samples[(samples["metric"] == "llc_occupancy") & (samples["subject"] == "flood@2")]
    last = own.groupby("window")["value"].last()[rows["window"]]
    true = record["truth"][scene]["flood@2"]["occupancy_bytes"][0]
    assert last.to_numpy() == pytest.approx(true, rel=0.05)
    return true / WAY


@pytest.mark.parametrize(("model", "ways"), [("", 1), ('io_ways: "0x600", tied: true, ', 2)])
def test_one_way_that_is_tied_holds_more_than_one_way(tmp_path, monkeypatch, model, ways):
    _, _, record, windows, samples = played(tmp_path, monkeypatch, model)
    assert ways - 1 < occupied(record, windows, samples) <= ways + 0.01
    beyond = record.get("processor", {}).get("beyond", {})  # of registers nothing can be read here
    assert beyond == ({} if ways == 1 else {"split-10": {"flood@2": [pytest.approx(2, rel=0.05), 1]}})


def test_registers_put_it_on_record_and_relabel_the_partition(tmp_path, monkeypatch):
    plan, folder, record, windows, _ = played(tmp_path, monkeypatch, 'io_ways: "0x600", tied: true, registers: true, ')
    found = record["processor"]["partitions"]["split-10"]
    row = {"member": "flood@2", "line": "L3", "domain": 0, "asked": "400", "held": "600"}
    assert row in found
    assert record["processor"]["registers"]["how"].startswith("read once under each partition")
    assert windows["valid"].all()  # what was measured stays: it is what these settings do here
    real, known = what_was_held(plan, folder)
    assert set(known.values()) == {OTHERWISE}
    (mix,) = [mix for mix in real.mixes if mix.partitions]
    assert {share.member: share.ways for share in mix.partitions[0].shares} == {
        "ranking@1": 0x7FF, "flood@2": 0x600, "*": 0x600,
    }  # fmt: skip


@pytest.mark.parametrize(("tied", "state"), [("true", BEYOND), ("false", UNCERTAIN)])
def test_without_registers_occupancy_shows_it_and_else_it_stays_uncertain(tmp_path, monkeypatch, tied, state):
    plan, folder, *_ = played(tmp_path, monkeypatch, f'io_ways: "0x600", tied: {tied}, ')
    _, known = what_was_held(plan, folder)
    assert set(known.values()) == {state}
