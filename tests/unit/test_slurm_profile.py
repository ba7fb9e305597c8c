"""The profile for Slurm says in one sentence what it lacks, and asks for what a measurement needs."""

import os
import shutil

import pytest
import yte
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from castmates import shipped

PROFILE = shipped.profile().parent / "slurm/profile.yaml"


@pytest.fixture
def here(monkeypatch):
    """A machine of a cluster, as the profile sees it: the programs that are there, and whether the plugin is."""
    monkeypatch.delenv("SBATCH_MEM_PER_NODE", raising=False)

    def machine(*programs: str, plugin: bool = True) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in programs else None)
        monkeypatch.setattr(ExecutorPluginRegistry, "is_installed", lambda *_: plugin)

    return machine


def profile():
    with PROFILE.open() as file:
        return yte.process_yaml(file, require_use_yte=True)


@pytest.mark.parametrize(
    ("programs", "plugin", "sentence"),
    [
        (("sbatch",), False, "sweeps on Slurm need snakemake-executor-plugin-slurm, which is not installed"),
        ((), True, "there is no sbatch here; run the sweep on a machine that submits jobs"),
    ],
)
def test_what_is_missing_is_one_sentence(here, programs, plugin, sentence):
    here(*programs, plugin=plugin)
    with pytest.raises(SystemExit, match=sentence) as ended:
        profile()
    assert str(ended.value).startswith("castmates: ")
    assert "\n" not in str(ended.value)


def test_measured_jobs_take_whole_nodes_and_nothing_serialises_the_cluster(here):
    here("sbatch")
    made = profile()
    # The rule itself asks for exclusive nodes, with those that it stays away from (test_slurm_nodes.py).
    assert set(made["set-resources"]["measure_launch"]) == {"mem_mb"}
    assert "--exclusive" in made["set-resources"]["describe_machine"]["slurm_extra"]
    for rule in ("measure_launch", "describe_machine"):
        assert made["set-resources"][rule]["mem_mb"] == 0  # which the plugin leaves out, so that the variable counts
    assert os.environ["SBATCH_MEM_PER_NODE"] == "0"
    assert "resources" not in made  # `machine` would let one launch run at a time
    assert made["latency-wait"] > 60  # what an NFS client may keep of a folder
    assert made["rerun-triggers"] == ["mtime", "params"]
    assert made["slurm-status-command"] == "squeue"  # without accounts
