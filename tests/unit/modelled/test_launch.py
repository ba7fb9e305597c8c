"""A modelled launch through the runner's own rounds, windows, ledger, driver and record."""

import json

import pandas as pd
import pytest

from castmates.pipeline.measure_launch import measure_launch
from castmates.study.schedule import stretches
from tests.unit.modelled.makers import QUIET, STUDY, SWEEPS, project_of
from tests.unit.snapshots import assert_as_before, refusal


def played(tmp_path, monkeypatch, text, number=1):
    monkeypatch.chdir(tmp_path)
    plan = project_of(tmp_path, text).plan()
    launch = plan.launches[number - 1]
    measure_launch(plan, launch.path, tmp_path / "out", tmp_path)
    record = json.loads((tmp_path / "out" / "launch.json").read_text())
    tables = [pd.read_parquet(tmp_path / "out" / f"{name}.parquet") for name in ("windows", "samples", "steps")]
    return launch, record, *tables


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield played(tmp_path_factory.mktemp("quiet"), monkeypatch, STUDY + QUIET + SWEEPS)


def test_without_noise_every_window_shows_the_truth(quiet):
    launch, record, windows, *_ = quiet
    assert record["status"] == "measured"
    assert len(windows) == 2 * sum(len(scene.active) for scene in launch.cohort.scenes)
    assert windows["valid"].all()
    for row in windows.to_dict("records"):
        assert row["rate"] == pytest.approx(record["truth"][row["scene"]][row["member"]]["rate"], rel=1e-3)


def test_everything_says_that_it_is_modelled(quiet):
    _, record, windows, samples, steps = quiet
    assert record["platform"] == "modelled"
    assert set(windows["platform"]) == {"modelled"}
    assert "modelled" in record["freezer"]
    assert set(samples["platform"]) == {"modelled"}
    assert set(steps["platform"]) == {"modelled"}


def test_windows_carry_the_masks_that_the_kernel_in_memory_has(quiet):
    launch, _, windows, *_ = quiet
    for scene in launch.cohort.scenes:
        for share in scene.shares:
            if share.member in scene.active and share.ways is not None:
                own = windows[(windows["scene"] == scene.name) & (windows["member"] == share.member)]
                assert set(own["ways"]) == {share.ways.bit_count()}
    assert set(windows[windows["scene"] == "alone"]["ways"]) == {12}


def test_the_last_sample_of_a_window_is_the_occupancy_of_the_model(quiet):
    _, record, windows, samples, _ = quiet
    own = samples[samples["metric"] == "llc_occupancy"].groupby(["window", "subject"])["value"].last()
    for row in windows.to_dict("records"):
        (true,) = record["truth"][row["scene"]][row["member"]]["occupancy_bytes"]
        assert own[row["window"], row["member"]] == pytest.approx(true, rel=0.01, abs=2048)


def test_the_traffic_of_a_window_is_the_model_s(quiet):
    _, record, windows, samples, _ = quiet
    last = samples[samples["metric"] == "mbm_total"].groupby(["window", "subject"])["value"].last()
    alone = windows[windows["scene"] == "antagonist-alone:flood@2"].iloc[0]
    true = record["truth"]["antagonist-alone:flood@2"]["flood@2"]
    assert true["misses"] == [1.0]
    assert last[alone["window"], "flood@2"] == pytest.approx(true["steps_per_second"] * 262_144 * 64 * 1.33, rel=0.01)


def test_the_same_launch_is_the_same_again(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = played(tmp_path / "a", monkeypatch, STUDY)[2]
    second = played(tmp_path / "b", monkeypatch, STUDY)[2]
    pd.testing.assert_frame_equal(first, second)
    assert first["rate"].nunique() == len(first)


def test_errors_are_one_sentence(tmp_path):
    reuse = "reuse: [{size: 1 MiB, share: 60%}, {size: 2 MiB, share: 60%}]"
    texts = [
        STUDY.replace("[flood]", "[mute]"), STUDY.replace("platform: modelled\n", ""),
        STUDY.replace("modelled", "guessed"), STUDY + "model: {ways: 0}\n", STUDY + "model: {way_size: much}\n",
        STUDY + "model: {ways: 4, least_ways: 5}\n", STUDY + "model: {noise: {window: big}}\n",
        STUDY.replace("name: example", f"name: example\nworkloads: {{odd: {{model: {{compute: 1.0, {reuse}}}}}}}"),
    ]  # fmt: skip

    def said(text):
        if "odd" not in text:
            text = text.replace("name: example", "name: example\nworkloads: {mute: {command: sleep 1}}")
        return refusal(project_of, tmp_path, text).replace(str(tmp_path), "")

    assert_as_before("modelled", {str(number): said(text) for number, text in enumerate(texts, 1)})


def test_every_stretch_begins_with_caches_that_hold_next_to_nothing_of_the_members(quiet):
    launch, record, *_ = quiet
    eviction = record["eviction"]
    assert eviction["times"] == eviction["read"] == 2 * len(stretches(launch, 1))
    assert eviction["left_most"] < 0.02
    assert eviction["not_emptied"] == 0


def test_a_launch_without_masks_empties_nothing(tmp_path, monkeypatch):
    _, record, *_ = played(tmp_path, monkeypatch, STUDY + QUIET)
    assert record["eviction"] == {}
