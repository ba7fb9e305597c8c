"""A modelled study whose recommended partition is confirmed by fresh blocks, under Snakemake and from end to end."""

import json
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
import yaml

from tests.workflow.sweeps import Sweeps
from tests.workflow.test_interruptions import wait_until_nobody_is_left

STUDY = {
    "platform": "modelled",
    "antagonists": ["stream"],
    "cache": {"sweeps": [{"split": [4, 10]}]},
    "recommend": {"lead_loss": 60},
    "budget": {"blocks": 3, "rounds": 2, "window": 0.2, "settle": 0.1, "longest_block": 3600},
}

pytestmark = pytest.mark.slow  # four runs of Snakemake


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("confirm")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    sweeps.write_study(STUDY)
    done = sweeps.run()
    assert done.returncode == 0, done.stderr
    return sweeps


def advice(sweeps):
    (row,) = pd.read_parquet(sweeps.results / "tables/recommendations.parquet").to_dict("records")
    return row


def fresh_blocks(sweeps):
    """Those that confirm, and when they were written."""
    found = sweeps.folder.glob("results/small-confirm-*/blocks/*/*/block.json")
    return {file: file.stat().st_mtime_ns for file in found}


def end_amid_the_blocks(sweeps, number):
    """Begin to confirm, and send the command, and nobody else, a signal when its first fresh block is there."""
    with subprocess.Popen(
        [sys.executable, "-m", "castmates", "confirm", "--cores", "2"],
        cwd=sweeps.folder, env=sweeps.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as asking:  # fmt: skip
        until = time.monotonic() + 240  # castmates and Snakemake start, and a block is measured
        while not fresh_blocks(sweeps) and asking.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        in_time = bool(fresh_blocks(sweeps))
        asking.send_signal(number)
        said = asking.communicate(timeout=150)[
            0
        ]  # longer than all that ESCALATION of castmates.pipeline.snakemake grants
    assert in_time, said
    assert asking.returncode == 128 + number, said
    assert "Traceback" not in said
    assert "goes on where it stopped" in said


def test_a_recommended_partition_is_confirmed_by_fresh_blocks_that_hold_the_truth(swept):
    before = advice(swept)
    assert (before["verdict"], before["confirmation"]) == ("met", "not confirmed yet")
    page = swept.results / "report/index.html"
    assert "Not confirmed yet: run <code>castmates confirm config/config.yaml</code>" in page.read_text()
    said = swept.castmates("recommend", "--lead-loss", "60")
    assert "not measured: modelled" in said.lower()
    assert "Not confirmed yet" in said
    end_amid_the_blocks(swept, signal.SIGTERM)
    wait_until_nobody_is_left(swept)
    kept = fresh_blocks(swept)
    assert 1 <= len(kept) < 3
    swept.castmates("confirm", "--cores", "2")
    assert fresh_blocks(swept).items() > kept.items()
    (file,) = (swept.results / "confirm").glob("*.yaml")
    study = yaml.safe_load(file.read_text())
    assert study["mixes"] == [{"lead": "chase", "antagonists": ["stream"]}]
    assert study["cache"]["only"] == [before["partition"]]
    after = advice(swept)
    assert after["confirmation"] == "confirmed"
    assert (after["confirmed_in"], after["confirmed_blocks"]) == (file.stem, 3)
    assert after["loss_pct"] == before["loss_pct"]  # the search's estimate stays what it was
    assert after["confirmed_loss_pct"] != before["loss_pct"]
    record = json.loads(next((swept.folder / "results" / file.stem).glob("blocks/*/1/block.json")).read_text())
    rates = {scene: {name: one["rate"] for name, one in them.items()} for scene, them in record["truth"].items()}
    lead, others = record["spec"]["company"]["members"][0]["name"], record["spec"]["company"]["members"][1]["name"]
    corun = rates[f"corun:chase+stream@{before['partition']}"]
    truth = 100 * (1 - corun[lead] / rates["solo"][lead])
    assert after["confirmed_loss_pct"] == pytest.approx(truth, abs=3)
    assert after["confirmed_kept_pct"] == pytest.approx(100 * corun[others] / rates[f"alone:{others}"][others], abs=3)
    assert "Confirmed: " in page.read_text()
    pareto = pd.read_parquet(swept.results / "tables/pareto.parquet")
    assert pareto[["stage", "blocks", "refused"]].iloc[-1].tolist() == ["confirmed", 3, 0]
    searched = {json.loads(one.read_text())["spec"]["seed"] for one in swept.results.glob("blocks/*/*/block.json")}
    assert record["spec"]["seed"] not in searched
    assert "Nothing to be done" in swept.run("--dry-run").stdout
    assert "Confirmed: " in swept.castmates("recommend")
