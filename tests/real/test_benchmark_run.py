"""A benchmark as `make benchmarks` runs it: measured, kept, on the page, and not run again."""

import subprocess
import sys

import pytest

from benchmarks import all as everything
from benchmarks import runs
from benchmarks.commands import COMMANDS
from benchmarks.machine import ROOT

pytestmark = pytest.mark.landing
HEARTBEAT = next(command for command in COMMANDS if command.name == "heartbeat_cost")


@pytest.fixture
def start(tmp_path):
    words = ["--only", HEARTBEAT.name, "--runs", str(tmp_path / "runs"), "--page", str(tmp_path / "page.md")]

    def started():
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.all", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )

    return started


def test_a_run_is_kept_and_on_the_page_and_a_killed_one_leaves_nothing(tmp_path, start):
    killed = start()
    try:
        assert "1 of 1: python -m benchmarks.heartbeat_cost" in killed.stderr.readline()
    finally:
        killed.terminate()
        killed.communicate()
    assert runs.kept(HEARTBEAT.name, tmp_path / "runs") == []
    assert everything.due(tmp_path / "runs", [HEARTBEAT]) == [HEARTBEAT]
    done = start()
    _, said = done.communicate()
    assert done.returncode == 0, said
    (run,) = runs.kept(HEARTBEAT.name, tmp_path / "runs")
    ratios = {one.what: one for one in run.findings}
    assert ratios["C: beat, of an empty loop"].value > ratios["C: no runner, of an empty loop"].value
    assert {one.counted() for one in run.findings} == {"8 launches"}
    assert "## What a heartbeat costs" in (tmp_path / "page.md").read_text()
    assert everything.due(tmp_path / "runs", [HEARTBEAT]) == []
