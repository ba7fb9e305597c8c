"""The lab's masks change no time, and the trial must show that; what it changes must be gone afterwards."""

import json
import subprocess
from dataclasses import replace

import pytest

from castmates.machine import trial_records
from castmates.machine.journal import journals
from castmates.study.rdt_trial import Tried
from castmates.trials.rdt import eviction, isolation, masks, programs, throttles, trial
from castmates.trials.rdt.masks import NO_ALLOCATION, NO_EFFECT, Plateau, follows
from tests.lab import guest


@pytest.fixture(autouse=True)
def quick(machine, compiled, monkeypatch):
    """What the trial runs, in windows that are few and short: a guest that says nothing for minutes is ended."""
    monkeypatch.setattr(trial.environments, "build", lambda *_: compiled.parent)
    windows = (
        {"WINDOW_S": 0.02, "OCCUPIED_S": 0.1, "MOVED_S": 0.02}
        if machine.obeys
        else {"WINDOW_S": 0.1, "OCCUPIED_S": 0.5}
    )
    for name, length in (windows | {"FEWEST_BEATS": 4}).items():
        monkeypatch.setattr(programs, name, length)
    monkeypatch.setattr(throttles, "MOST_STEPS", 2)
    monkeypatch.setattr(throttles, "RULE", replace(throttles.RULE, looks=(4,)))
    monkeypatch.setattr(masks, "IO_RULE", replace(masks.IO_RULE, looks=replace(masks.IO_RULE.looks, at=(8,))))
    for part, looks in ((isolation, (8, 16)), (eviction, (4,))):
        monkeypatch.setattr(part, "RULE", replace(part.RULE, looks=replace(part.RULE.looks, at=looks)))


def nothing_is_left():
    return not (
        guest.is_mounted()
        or [entry for journal in journals() for entry in journal.entries()]
        or subprocess.run(["pgrep", "-x", "chase|stream"], capture_output=True, check=False).stdout
    )


@pytest.mark.machines("small-cache")
def test_masks_that_change_no_time_are_not_verified(state, tmp_path):
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    found = Tried.of(record)
    assert found.parts["masks"].verdict == NO_EFFECT, record["parts"]
    assert found.parts["isolation"].verdict in ("shows nothing", "not isolated", "undecided")
    assert not found.masks_hold
    (cache,) = record["caches"]
    assert follows([Plateau(**one) for one in cache["masks"]["occupancy"]]) is True
    assert record["platform"] == "emulated"
    assert trial_records.RDT.read(tmp_path / "cache") == json.loads(json.dumps(record))  # tuples are read as lists
    assert nothing_is_left()


@pytest.mark.machines("skylake")
def test_where_there_is_nothing_to_try_it_says_so(state, tmp_path):
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    assert record["parts"]["masks"]["verdict"] == NO_ALLOCATION
    assert list(record["parts"]) == ["masks"]
    assert not guest.is_mounted()


@pytest.mark.machines("monitoring-only")
def test_where_there_is_no_allocation_traffic_is_compared_all_the_same(state, tmp_path):
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    assert record["parts"]["masks"]["verdict"] == NO_ALLOCATION
    assert record["parts"]["throttles"]["verdict"] == "not tried"
    assert record["parts"]["traffic"]["verdict"] != "not counted"
    assert not Tried.of(record).masks_hold
    assert nothing_is_left()


@pytest.mark.machines("obeying")
def test_a_cache_that_obeys_is_verified(state, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "MEMBERS", 99)  # the trial of I/O's ways is left out: time passes slowly there
    found = Tried.of(record := trial.verify(tmp_path, tmp_path / "cache", print))
    verdicts = {part: each.verdict for part, each in found.parts.items()}
    assert (verdicts["masks"], verdicts["isolation"], verdicts["eviction"]) == ("works", "isolated", "emptied"), record
    assert found.masks_hold
    assert nothing_is_left()


# Each fault of a processor (tests/lab/shapes.py), and what the parts must say. It was written before they were tried,
# except three words, of leak and policy. What leaks fills the whole cache, of a program alone too; from one that adapts
# a neighbour takes something, and a little is left when it is emptied.
# docs/rdt.md has the same table, which tests/unit/rdt/test_proofs.py compares.
EXPECTED = {
    "leak": {"masks": "occupancy does not follow", "isolation": "not isolated", "eviction": "emptied"},
    "ahead": {"isolation": "not isolated"},
    "policy": {"isolation": "undecided", "eviction": "undecided"},
    "slack": {"throttles": "some steps are equal", "traffic": "agrees"},
    "steep": {"throttles": "some steps are equal", "traffic": "agrees"},
    "blind": {"masks": "works", "isolation": "isolated", "eviction": "not read", "traffic": "not counted"},
    "tied": {"io_way": "tied"},
}
OF_PROGRAMS, OF_STREAMS = {"masks", "io_way", "isolation", "eviction"}, {"throttles", "traffic"}
STEPS = {"slack": [100, 80, 40, 10], "steep": [100, 90, 80, 70], "blind": [100]}  # that are tried
EQUAL = {"slack": [[40, 100], [80, 100]], "steep": [[70, 90], [80, 90]]}


def until(asked, steps):
    """Of a trial's steps, those up to the last part that is asked for; none where none is."""

    def some(*given):
        left = set(asked)
        for name, found in steps(*given) if left else ():
            yield name, found
            left.discard(name)
            if not left:
                return

    return some


@pytest.mark.machines(*EXPECTED)
def test_a_processor_at_fault_is_found_out(machine, state, tmp_path, monkeypatch):
    expected = EXPECTED[machine.name]
    for steps, parts in (("_try_masks", OF_PROGRAMS), ("_try_streams", OF_STREAMS)):
        monkeypatch.setattr(trial, steps, until(parts & expected.keys(), getattr(trial, steps)))
    if "masks" not in expected:  # which come first, and take long
        monkeypatch.setattr(trial, "_alone", lambda *_: {"verdict": "undecided", "said": "They were left out."})
    if "io_way" not in expected:
        monkeypatch.setattr(trial, "MEMBERS", 99)
    monkeypatch.setattr(programs, "MOVED_S", 0.25)  # two readings of traffic at least
    if machine.name in STEPS:
        monkeypatch.setattr(throttles, "steps_of", lambda _: STEPS[machine.name])
        monkeypatch.setattr(throttles, "cores_to_try", lambda _: [1])  # four fill the channel whatever the step
        monkeypatch.setattr(throttles, "RULE", replace(throttles.RULE, looks=(8,)))
    record = trial.verify(tmp_path, tmp_path / "cache", print)
    (cache,) = record["caches"]
    print(json.dumps(cache)[:200000])
    assert {part: cache[part]["verdict"] for part in expected} == expected, record
    assert record["equal_steps"]["steps"] == EQUAL.get(machine.name, [])
    if machine.name == "tied":
        assert not cache["io_way"]["devices_write"]
        assert [cache["io_way"][f"by_{witness}"] for witness in ("time", "occupancy", "registers")] == ["tied"] * 3
    assert nothing_is_left()
