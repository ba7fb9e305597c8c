"""A whole day on an emulated machine that obeys masks: its steps run in this process, in few and short windows."""

import contextlib
import json
import tarfile
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.hardware_day import bundle, day, steps, sweep
from castmates.hardware_day.steps import Ended
from castmates.machine.journal import journals
from castmates.trials import capture, memory_peak
from castmates.trials.rdt import eviction, isolation, programs, throttles, trial
from tests.lab import guest

OVER = "it was ended after 1 s, since its time was over."


@pytest.fixture(autouse=True)
def short(machine, compiled, tmp_path, monkeypatch):
    """Have each command run in this process, because an interpreter starts slowly here."""
    for module in (capture, trial, memory_peak):
        monkeypatch.setattr(module.environments, "build", lambda *_: compiled.parent)
    windows = {"WINDOW_S": 0.02, "OCCUPIED_S": 0.1, "MOVED_S": 0.02, "FEWEST_BEATS": 4}
    for name, length in windows.items():
        monkeypatch.setattr(programs, name, length)
    monkeypatch.setattr(throttles, "MOST_STEPS", 2)
    monkeypatch.setattr(throttles, "RULE", replace(throttles.RULE, looks=(4,)))
    monkeypatch.setattr(trial, "MEMBERS", 99)
    for part, looks in ((isolation, (8, 16)), (eviction, (4,))):
        monkeypatch.setattr(part, "RULE", replace(part.RULE, looks=replace(part.RULE.looks, at=looks)))
    monkeypatch.setattr(memory_peak, "ladder", lambda _: [1])
    monkeypatch.setattr(memory_peak, "WARM_UP_S", 0.02)
    monkeypatch.setattr(memory_peak, "MEASURED_S", 0.1)
    monkeypatch.setattr(capture, "SECONDS", 0.1)
    monkeypatch.setattr(capture, "WARM_UP_S", 0.02)
    monkeypatch.setattr(steps, "bounded", bounded)
    monkeypatch.setattr(sweep, "bounded", bounded)
    monkeypatch.setattr(sweep, "SIZES", (3,))
    monkeypatch.setattr(sweep, "PARTS", (4,))
    monkeypatch.setattr(bundle, "MOST", 20_000_000)
    monkeypatch.setenv("CASTMATES_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def bounded(words, log, seconds, say, folder=None, aloud=True):
    """In place of a process: counters and losses take minutes here and have tests of their own; no sweep is begun."""
    if {"--verify-counters", "--truth"} & {*words} or words[0] == "sweep":
        return Ended(None, "", OVER)
    with contextlib.chdir(folder or "."):
        done = CliRunner().invoke(app, list(words))
    print(done.output)
    return Ended(done.exit_code, done.stdout, str(done.exception or ""))


@pytest.mark.machines("obeying")
def test_a_day_finds_masks_that_hold_and_leaves_the_machine_as_it_was(state, tmp_path):
    folder = tmp_path / "day"
    before = day.settings()
    assert not day.spend(folder, 600, False, print)
    noted = json.loads((folder / "steps.json").read_text())
    statuses = {name: (one["status"], one["reason"]) for name, one in noted["steps"].items()}
    assert [statuses[name][0] for name in ("capture", "memory-peak", "verify-rdt")] == ["done"] * 3, statuses
    assert [statuses[name] for name in ("verify-counters", "truth")] == [("failed", OVER)] * 2
    assert statuses["sweep"][0] == "failed"
    assert "of 3 launches" in statuses["sweep"][1]
    assert sweep._study((folder / "sweep/study.yaml").read_text())["cache"]["sweeps"] == [{"split": [3, 7, 11]}]
    parts = json.loads((folder / "rdt.json").read_text())["parts"]
    assert (parts["masks"]["verdict"], parts["isolation"]["verdict"]) == ("works", "isolated"), parts
    page = (folder / "index.html").read_text()
    assert 'stamp other">emulated, not hardware' in page
    assert "Isolation: time of a load" in page
    with tarfile.open(folder / "bundle.tar.gz") as archive:
        names = set(archive.getnames())
    assert {"machine.json.gz", "rdt.json", "memory-peak.json", "index.html", "steps.json", "study.yaml"} <= names
    assert noted["restored"].startswith("Everything is as it was before"), noted["restored"]
    assert day.settings() == before
    assert not guest.is_mounted()
    assert not [entry for journal in journals() for entry in journal.entries()]
