"""A modelled study whose recommended partition is confirmed by fresh launches, under Snakemake and from end to end."""

import json
import signal
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from tests.waiting import PATIENCE, wait_for
from tests.workflow.test_interruptions import wait_until_nobody_is_left


def advice(sweeps):
    (row,) = pd.read_parquet(sweeps.results / "tables/recommendations.parquet").to_dict("records")
    return row


def fresh_launches(sweeps):
    """Those that confirm, and when they were written."""
    found = sweeps.folder.glob("results/small-confirm-*/launches/*/*/launch.json")
    return {file: file.stat().st_mtime_ns for file in found}


def end_amid_the_launches(sweeps, number):
    """Begin to confirm, and send the command, and nobody else, a signal when its first fresh launch is there."""
    with subprocess.Popen(
        [sys.executable, "-m", "castmates", "sweep", "--confirm", "--cores", "2"],
        cwd=sweeps.folder, env=sweeps.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as asking:  # fmt: skip
        try:
            wait_for(lambda: fresh_launches(sweeps) or asking.poll() is not None, "the first fresh launch is measured")
            in_time = asking.poll() is None
            asking.send_signal(number)
            said = asking.communicate(timeout=2 * PATIENCE)[0]
        finally:
            asking.kill()
    assert in_time, said
    assert asking.returncode == 128 + number, said
    assert "Traceback" not in said
    assert "goes on where it stopped" in said


def test_a_recommended_partition_is_confirmed_by_fresh_launches_that_hold_the_truth(modelled, tmp_path):
    swept = modelled.copy(tmp_path / "project")
    before = advice(swept)
    assert (before["verdict"], before["confirmation"]) == ("met", "not confirmed yet")
    page = swept.results / "report/index.html"
    assert "Not confirmed yet: run <code>castmates sweep config/config.yaml --confirm</code>" in page.read_text()
    said = swept.castmates("show", "--limit", "25%")
    assert "not measured: modelled" in said.lower()
    assert "Not confirmed yet" in said
    end_amid_the_launches(swept, signal.SIGTERM)
    wait_until_nobody_is_left(swept)
    kept = fresh_launches(swept)
    assert 1 <= len(kept) < 3
    swept.castmates("sweep", "--confirm", "--cores", "2")
    assert fresh_launches(swept).items() > kept.items()
    (file,) = (swept.results / "confirm").glob("*.yaml")
    study = yaml.safe_load(file.read_text())
    assert study["mixes"] == [{"lead": "chase", "antagonists": ["stream"]}]
    assert study["cache"]["only"] == [before["partition"]]
    after = advice(swept)
    assert after["confirmation"] == "confirmed"
    assert (after["confirmed_in"], after["confirmed_launches"]) == (file.stem, 3)
    assert after["loss_pct"] == before["loss_pct"]  # the search's estimate stays what it was
    assert after["confirmed_loss_pct"] != before["loss_pct"]
    record = json.loads(next((swept.folder / "results" / file.stem).glob("launches/*/1/launch.json")).read_text())
    rates = {scene: {name: one["rate"] for name, one in them.items()} for scene, them in record["truth"].items()}
    lead, others = record["spec"]["cohort"]["members"][0]["name"], record["spec"]["cohort"]["members"][1]["name"]
    corun = rates[f"corun:chase+stream@{before['partition']}"]
    truth = 100 * (1 - corun[lead] / rates["alone"][lead])
    assert after["confirmed_loss_pct"] == pytest.approx(truth, abs=3)
    assert after["confirmed_kept_pct"] == pytest.approx(
        100 * corun[others] / rates[f"antagonist-alone:{others}"][others], abs=3
    )
    assert "Confirmed: " in page.read_text()
    pareto = pd.read_parquet(swept.results / "tables/pareto.parquet")
    assert pareto[["stage", "launches", "refused"]].iloc[-1].tolist() == ["confirmed", 3, 0]
    searched = {json.loads(one.read_text())["spec"]["seed"] for one in swept.results.glob("launches/*/*/launch.json")}
    assert record["spec"]["seed"] not in searched
    swept.assert_finished()
    assert "Confirmed: " in swept.castmates("show", "--partitions")


@pytest.mark.nightly
def test_a_quota_on_overcommitted_cpus_is_confirmed_by_fresh_launches_that_hold_the_truth(arranged, tmp_path):
    swept = arranged.copy(tmp_path / "project")
    mix, partition = "chase+compute:cpu", "quota-50"
    swept.castmates("sweep", "--confirm", "--mix", mix, "--partition", partition, "--cores", "2")
    (file,) = (swept.results / "confirm").glob("*.yaml")
    pareto = pd.read_parquet(swept.results / "tables/pareto.parquet")
    (row,) = pareto[pareto["stage"] == "confirmed"].to_dict("records")
    assert (row["mix"], row["partition"], row["launches"], row["refused"]) == (mix, partition, 3, 0)
    record = json.loads(next((swept.folder / "results" / file.stem).glob("launches/*/1/launch.json")).read_text())
    rates = {scene: {name: one["rate"] for name, one in them.items()} for scene, them in record["truth"].items()}
    (under,) = [scene for scene in rates if scene.startswith("corun:") and scene.endswith(f"@{partition}")]
    lead = record["spec"]["cohort"]["members"][0]["name"]
    assert row["loss_pct"] == pytest.approx(100 * (1 - rates[under][lead] / rates["alone"][lead]), abs=3)
    assert row["loss_pct"] > 5  # the lead has to give up part of its CPU's time
