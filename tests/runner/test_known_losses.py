"""The trial of known losses on this machine: few short launches, in which nothing is rejected."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median

import psutil
import pytest

from castmates.files import memory_folder
from castmates.trials import known_losses
from castmates.workloads.native import build
from tests.unit.test_help import ask
from tests.waiting import PATIENCE, wait_for

NOTHING_REJECTED = {"steal": "100%", "foreign": "100%", "neighbours": "100%", "silence": "100%"}
pytestmark = pytest.mark.needs("two-cpus")


@pytest.mark.quiet
def test_a_tax_of_a_fifth_is_found_and_the_exit_status_says_so(cache, mark, tmp_path, monkeypatch):
    budget = {"launches": 3, "rounds": 2, "window": 0.2, "antagonists_alone": False}
    monkeypatch.setattr(known_losses, "LOSSES", (0.0, 0.2))
    monkeypatch.setattr(
        known_losses, "SHORT", {"budget": budget, "limits": NOTHING_REJECTED, "counters": {"cost_pairs": 0}}
    )

    seen: list[float] = []

    def tried():
        done = ask("doctor", "--truth", "--minutes", "0", "--format", "json")
        assert done.stdout, done.exception
        record = json.loads(done.stdout)
        assert [row["known"] for row in record["losses"]] == [0, 20]
        assert record["launches"] == 3
        assert (done.exit_code, str(done.exception or "")) == (
            (0, "") if record["verdict"] == "found" else (1, record["said"])
        )
        none, fifth = (row["loss"] for row in record["losses"])
        seen.append(fifth - none)
        return abs(median(seen) - 20) < 5  # where others run beside it, not at once

    wait_for(tried, "a tax of 20 % is found", lambda: seen)
    assert not list(Path(tmp_path).glob("castmates-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_leaves_nothing_however_it_is_ended(number, cache, mark, tmp_path):
    words = [sys.executable, "-m", "castmates", "doctor", "--truth"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        try:
            wait_for(lambda: any(one[0].endswith("/compute") for one in members(mark)), "the lead runs")
            running.send_signal(number)
            _, said = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert running.returncode != 0
    assert "Traceback" not in said
    shared = Path(memory_folder() or tmp_path)
    left = [(tmp_path, "castmates-*"), (shared, f"castmates-{running.pid}-*")]
    wait_for(lambda: not members(mark) and not any(list(place.glob(name)) for place, name in left), "nothing is left")


def members(mark):
    return [
        one.info["cmdline"] for one in psutil.process_iter(["cmdline"]) if mark in " ".join(one.info["cmdline"] or ())
    ]


def test_no_kernel_of_a_study_has_the_tax(kernels):
    """The header is compiled in by -include alone: no kernel names it, and none as built asks for its page."""
    assert not [file for file in build.SOURCES.glob("*.[ch]") if "truth" in file.read_text()]
    assert not [file for file in kernels.iterdir() if b"CASTMATES_TRUTH" in file.read_bytes()]
