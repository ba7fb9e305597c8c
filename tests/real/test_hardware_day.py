"""Commands of ours in processes of their own: they end in time, and with the day that started them."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from castmates.hardware_day import steps
from castmates.linux.processes import read_table
from tests.waiting import PATIENCE, wait_for

REPOSITORY = Path(__file__).parents[2]
LONG = ("doctor", "--truth", "--minutes", "500")

pytestmark = pytest.mark.quiet  # other tests hold the lock of this machine for minutes


def running(mark):
    """The processes that have this in their command line or environment."""
    found = []
    for pid in read_table():
        try:
            text = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if str(mark).encode() in text and pid != os.getpid():
            found.append(pid)
    return found


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, whose name all processes of a step have in their environment."""
    monkeypatch.setenv("CASTMATES_CACHE", str(place := tmp_path / "cache"))
    return place


def test_a_step_whose_time_is_over_is_ended_with_all_that_it_started(tmp_path, cache):
    said = []
    ended = steps.bounded(LONG, tmp_path / "log", 3, said.append, tmp_path)
    assert ended.code is None
    assert ended.why == "it was ended after 3 s, since its time was over."
    wait_for(lambda: not running(cache), "all its processes are gone")


def test_the_last_sentence_of_a_command_is_why_it_failed(tmp_path, cache):
    ended = steps.bounded(["plan", "nowhere.yaml"], tmp_path / "log", PATIENCE, print, tmp_path)
    assert ended.code == 1
    assert ended.why.startswith("nowhere.yaml")
    assert "nowhere.yaml" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_day_that_is_ended_leaves_a_bundle_and_no_process(number, tmp_path, cache):
    folder = tmp_path / "day"
    words = [sys.executable, "-P", "-m", "castmates", "hardware-day", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    begun = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # `nohup pytest &` ignores them
    )
    try:
        wait_for(lambda: (folder / "logs/memory-peak.log").exists(), "its second step has begun")
        begun.send_signal(number)
        said = begun.communicate(timeout=PATIENCE)[0].decode()
    finally:
        begun.kill()
        begun.wait()
    assert begun.returncode == 130, said
    noted = json.loads((folder / "steps.json").read_text())
    assert noted["steps"]["memory-peak"]["status"] == "interrupted"
    assert noted["restored"]
    with tarfile.open(folder / "bundle.tar.gz") as archive:
        assert {"index.html", "steps.json"} <= set(archive.getnames())
    assert "verify-counters: not begun." in said
    wait_for(lambda: not running(cache), "all its processes are gone")
