"""`castmates sweep`, `status` and `show` over a modelled study, and `init` in an empty folder."""

import json
import subprocess
import sys

import pytest

from tests.workflow.sweeps import Sweeps

pytestmark = pytest.mark.core


@pytest.fixture
def project(modelled, tmp_path):
    return modelled.copy(tmp_path / "project")


def test_a_sweep_goes_on_from_what_is_there_and_takes_more_launches(project: Sweeps):
    before = project.blocks()
    assert json.loads(project.castmates("status", "--json"))["missing"] == [0, 0]
    project.castmates("sweep", "--blocks", "4")
    assert project.blocks().items() > before.items()
    state = json.loads(project.castmates("status", "results/small", "--json"))
    assert state["launches"]["measured"] == len(project.blocks())
    assert (state["missing"], state["running"], state["stale"]) == ([0, 0], None, False)
    shown = json.loads(project.castmates("show", "--json"))
    assert shown["pairs"]
    assert shown["headline"] in " ".join(project.castmates("show").split())
    assert "small" in project.castmates("open")


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
