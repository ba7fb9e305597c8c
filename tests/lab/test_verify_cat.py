"""The lab's masks change no time, and the trial must show that; what it changes must be gone afterwards."""

import json
import subprocess

import pytest

from castmates.machine import trial_records
from castmates.machine.journal import journals
from castmates.trials.way_masks import trial
from castmates.trials.way_masks.verdict import NO_ALLOCATION, NO_EFFECT, follows
from castmates.trials.way_masks.verdict import Plateau as Occupied
from tests.lab import guest


@pytest.fixture(autouse=True)
def programs(compiled, monkeypatch):
    """What the trial runs."""
    monkeypatch.setattr(trial.environments, "build", lambda *_: compiled.parent)


@pytest.mark.machines("small-cache")
def test_masks_have_no_effect_on_time_here_and_occupancy_follows_them(state, tmp_path):
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    assert record["verdict"] == NO_EFFECT, record["said"]
    assert follows([Occupied(**one) for one in record["occupancy"]]) is True
    assert record["platform"] == "emulated"
    assert trial_records.WAY_MASKS.read(tmp_path / "cache") == json.loads(
        json.dumps(record)
    )  # tuples are read as lists
    assert not guest.is_mounted()
    assert not [entry for journal in journals() for entry in journal.entries()]
    assert not subprocess.run(["pgrep", "-x", "chase|stream"], capture_output=True, check=False).stdout


@pytest.mark.machines("skylake", "monitoring-only")
def test_where_there_is_no_allocation_it_says_so(state, tmp_path):
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    assert record["verdict"] == NO_ALLOCATION
    assert not guest.is_mounted()
