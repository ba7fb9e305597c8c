"""A study is rehearsed as on a server that nobody has here: from its plan to its page, with a kill on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pandas as pd
import pytest

from castmates.results.plans import read_plan
from tests.waiting import wait_for
from tests.workflow.sweeps import STUDY

STUDY_KEYS = {  # config/studies/cat-sweep.yaml with the lead that needs no TensorFlow, and some of its partitions
    "cache": {
        "sweeps": [{"split": "all"}, {"lead_ways": "all"}, {"overlap": [2, 4]}, {"antagonist_cap": [1, 2]}],
        "only": ["split-4", "split-14", "lead-4", "overlap-2-lead-7", "cap-2"],
    },
    "recommend": {"lead_loss": "3%"},
    "budget": STUDY["budget"] | {"launches": 2, "rounds": 1},
}
NAME, STUDY_FILE = "small-rehearsed-emerald-rapids", "config/config.yaml"
SWEEP = ("sweep", STUDY_FILE, "--rehearse", "emerald-rapids")


@pytest.fixture
def rehearsal(project):
    project.write_study(STUDY_KEYS)
    for part in ("results", "logs"):
        shutil.rmtree(project.folder / part, ignore_errors=True)
    return project


def start(sweeps):
    return subprocess.Popen(
        [sys.executable, "-m", "castmates", *SWEEP],
        cwd=sweeps.folder,
        env=sweeps.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_a_study_is_rehearsed_from_its_plan_to_its_page_with_a_kill_on_the_way(rehearsal):
    folder = rehearsal.folder / "results" / NAME
    planned = rehearsal.castmates("plan", STUDY_FILE, "--machine", "emerald-rapids", "--masks")
    first = start(rehearsal)

    def records():
        return sorted(folder.glob("launches/*/*/launch.json"))

    try:
        wait_for(lambda: records() or first.poll() is not None, "the first launch is measured")
        os.kill(first.pid, signal.SIGTERM)
        first.wait(60)
    finally:
        first.kill()
    kept = {file: file.stat().st_mtime_ns for file in records()}
    assert len(kept) == 1
    done = rehearsal._call(sys.executable, "-m", "castmates", *SWEEP)
    assert done.returncode == 0 or "nothing counts" in done.stderr, done.stderr  # on a busy machine
    assert len(records()) == 2
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items())

    plan = read_plan(folder / "plan.json")
    assert {part.name for mix in plan.mixes for part in mix.partitions} == set(STUDY_KEYS["cache"]["only"])
    for masks in ("L3:0=000f", "L3:0=7ff0", "L3:0=3fff", "L3:0=4000"):
        assert masks in planned  # of 15 ways
    windows = pd.read_parquet(folder / "tables/windows.parquet")
    assert set(windows["platform"]) == {"rehearsed"}
    assert windows["rate"].gt(0).all()
    launch = json.loads(records()[0].read_text())
    assert launch["hardware"]["allocator"]["allocation"].startswith("rehearsed")
    assert launch["eviction"] == {}  # masks that move nothing leave no cache to empty, and none to wait for
    samples = pd.read_parquet(records()[0].parent / "samples.parquet")
    assert set(samples.loc[samples["metric"] == "schemata", "note"].str.extract(r"L3:\d+=(\w+)")[0]) >= {"f", "7ff0"}
    occupancy = samples[samples["metric"].isin(["llc_occupancy", "mbm_total"])]
    assert len(occupancy)
    assert occupancy["value"].isna().all()

    machine = json.loads((folder / "machine.json").read_text())
    assert machine["hostname"]
    assert machine["rehearsed"]["processor"] == "INTEL(R) XEON(R) GOLD 5520+"
    assert machine["rehearsed"]["cache"]["ways"] == 15
    page = (folder / "report/index.html").read_text()
    assert "rehearsed (not measured)" in page.lower()
    assert "masks and throttles did nothing" in page
    stamps = pd.read_csv(folder / "tables/stamps.csv").set_index("stamp")
    assert not stamps["good"].any()
    assert "did nothing" in stamps.loc["masks", "sentence"]


def test_a_rehearsal_is_no_measurement_and_none_goes_on_as_the_other(finished):
    text = (finished.folder / STUDY_FILE).read_text()
    study = finished.folder / "config/rehearsed.yaml"
    study.write_text(text.replace("name: small", "name: small\ncache: {driver: 'rehearse:milan'}"))
    done = subprocess.run(
        [sys.executable, "-m", "castmates", "plan", study],
        cwd=finished.folder, env=finished.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "were measured, and the study is now rehearsed on 'milan': give it another name." in done.stderr
    study.unlink()
