"""A whole study with a mask sweep, under Snakemake, on the real resctrl of an emulated machine."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.kit.boot import boot
from tests.lab.shapes import SHAPES
from tests.workflow.sweeps import Sweeps

LEAD, OTHER = "chase@1", "stream@2"  # the first core is the runner's own
STUDY = {
    "cache": {"sweeps": [{"split": [3, 8]}, {"lead_ways": [2]}], "monitor": 20},
    "budget": {
        "blocks": 1,
        "rounds": 2,
        "spare_rounds": 1,
        "window": 0.5,
        "settle": 0.1,
        "longest_window": 3.0,
        "longest_settle": 0,
    },
    # An emulated CPU is one of the host's threads: what it loses to others there looks like silence here.
    "limits": {"steal": 1, "foreign": 1, "neighbours": 1, "silence": 1},
}
WAYS = {"unmanaged": (12, 12), "split-3": (3, 9), "split-8": (8, 4), "lead-2": (2, 12)}


@pytest.fixture(scope="module")
def swept(lab, tmp_path_factory):
    """The folder of results."""
    share = tmp_path_factory.mktemp("guest")
    sweeps = Sweeps.make(share / "project", share / "cache")
    sweeps.write_study(STUDY)
    # In the guest's memory, for the folder that it shares with the host is slow and knows no mmap.
    command = f"""
        cp -a project /tmp/project && cd /tmp/project
        export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH PYTHONDONTWRITEBYTECODE=1
        export CASTMATES_CACHE=/tmp/cache CASTMATES_STATE=/tmp/state
        look() {{ ls /sys/fs/resctrl /sys/fs/resctrl/mon_groups; cat /sys/fs/resctrl/schemata; }}
        mount -t resctrl resctrl /sys/fs/resctrl && look > /share/before
        snakemake --cores 4 --show-failed-logs
        code=$?
        look > /share/after
        cp -a results logs /share
        exit $code
    """
    done = boot(lab, replace(SHAPES["linux-6.12"], memory=3072), command, share, timeout=1800)
    assert done.code == 0, done.told
    return share


@pytest.fixture(scope="module")
def windows(swept):
    return pd.concat(pd.read_parquet(file) for file in (swept / "results/small/blocks").glob("*/*/windows.parquet"))


def test_every_window_carries_the_masks_that_the_kernel_read_back(windows):
    assert set(windows.partition) == set(WAYS)
    for partition, ways in WAYS.items():
        for member, wanted in zip((LEAD, OTHER), ways, strict=True):
            rows = windows[(windows.partition == partition) & (windows.member == member)]
            assert (rows.ways == wanted).all(), (partition, member, rows.ways.tolist())
            assert rows.schemata.str.contains("L3:0=").all()
    assert windows.valid.mean() > 0.5, windows.reasons.value_counts()
    assert set(windows.platform) == {"emulated"}


def test_occupancy_series_come_from_the_kernel(swept, windows):
    samples = pd.concat(pd.read_parquet(file) for file in (swept / "results/small/blocks").glob("*/*/samples.parquet"))
    occupancy = samples[(samples.metric == "llc_occupancy") & (samples.source == "resctrl")]
    assert {LEAD, OTHER} <= set(occupancy.subject)
    readings = occupancy[occupancy.value.notna()].groupby(["window", "subject"]).size()
    assert set(readings.index.get_level_values("window")) == set(windows.window)
    assert readings.median() >= 3
    assert occupancy.value.max() > 0


def test_results_are_stamped_emulated(swept):
    effects = pd.read_csv(swept / "results/small/tables/effects.csv")
    assert set(effects.platform) == {"emulated"}
    of_partition = effects[(effects.partition == "split-3") & (effects.member == LEAD)]
    assert set(of_partition.lead_ways) == {3}
    assert {"solo", "placebo", "placebo@mask", "unmanaged"} <= set(of_partition.baseline)
    assert "emulated" in (swept / "results/small/report/index.html").read_text()


def test_sweep_leaves_resctrl_as_it_was(swept):
    assert "L3:0=fff" in (swept / "before").read_text()
    assert (swept / "after").read_text() == (swept / "before").read_text()
