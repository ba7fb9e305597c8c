"""`castmates sweep`, `measure` and `show` over a modelled study."""

import json
import subprocess
import sys

import pytest
import yaml

from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import Sweeps

pytestmark = pytest.mark.core


@pytest.fixture
def project(modelled, tmp_path):
    return modelled.copy(tmp_path / "project")


def test_a_finished_study_is_shown(modelled: Sweeps):
    state = json.loads(modelled.castmates("show", "results/small", "--progress", "--format", "json"))
    assert state["launches"]["measured"] == len(modelled.launches())
    assert (state["missing"], state["running"], state["stale"]) == ([0, 0], None, False)
    shown = json.loads(modelled.castmates("show", "--format", "json"))
    assert shown["pairs"]
    assert shown["headline"] in " ".join(modelled.castmates("show").split())
    assert "small" in modelled.castmates("open")


def test_a_dry_run_measures_nothing_and_a_mistake_starts_nothing(project: Sweeps):
    (project.results / "report/index.html").unlink()
    project.castmates("sweep", "--dry-run")
    assert not (project.results / "report/index.html").exists()
    project.write_study({"antagonist": ["stream"]})
    done = subprocess.run(
        [sys.executable, "-m", "castmates", "sweep"],
        cwd=project.folder, env=project.environment(), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("castmates: config/config.yaml, line")
    assert "^" in done.stderr.splitlines()[-1]
    assert "snakemake" not in done.stderr


def test_measure_prints_its_result_once_on_standard_output_whether_it_measured_or_not(tmp_path):
    """With the study as it was written for a command and then edited: modelled, so that it takes seconds."""
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    study = MODELLED | {"name": "cat", "leads": ["cat"], "controls": None, "cache": {}, "recommend": {}}
    study |= {"workloads": {"cat": {"command": ["cat", "-n"], "memory": "10 MB", "model": {"compute": 0.001}}}}
    (sweeps.folder / "studies").mkdir()
    (sweeps.folder / "studies/cat.yaml").write_text(yaml.safe_dump(study))
    for there_before in (False, True):
        assert (sweeps.folder / "results/cat/plan.json").exists() is there_before
        done = sweeps._call(sys.executable, "-m", "castmates", "measure", "--beside", "stream", "--", "cat", "-n")
        assert done.returncode == 0, done.stderr
        headline = json.loads(sweeps.castmates("show", "results/cat", "--format", "json"))["headline"]
        assert " ".join(done.stdout.split()).count(headline) == 1
        assert headline not in " ".join(done.stderr.split())
        assert [line.split()[0] for line in (done.stdout + done.stderr).splitlines() if "file://" in line] == ["Report"]
        assert ("3 launches" in done.stderr) is not there_before
