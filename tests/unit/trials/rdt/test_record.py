"""The record speaks for one machine, and reaches the stamps."""

import json

import pytest

from castmates.analysis.effects.stamps import UNVERIFIED, VERIFIED, masks_stamp
from castmates.machine import trial_records
from castmates.machine.facts import topology_summary
from castmates.machine.topology import read_topology
from castmates.study.rdt_trial import Tried
from castmates.trials.rdt.trial import together
from tests.unit import sysfs
from tests.unit.caches import PERCENT
from tests.unit.rdt_trials import trial


def machine(root, model="Xeon", kernel="6.1.0", options="rw"):
    sysfs.write(root / "proc/cpuinfo", f"processor : 0\nmodel name : {model}\nmicrocode : 0x5")
    sysfs.write(root / "proc/sys/kernel/osrelease", kernel)
    sysfs.write(root / "proc/filesystems", "nodev\tresctrl")
    sysfs.write(root / "proc/self/mountinfo", f"30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl {options}")
    return root


def kept(cache, root, isolation="isolated"):
    record = {
        "identity": trial_records.RDT.identity(root),
        **trial(isolation=isolation),
    }
    trial_records.RDT.write(cache, record)
    return record


def test_a_record_is_found_by_its_own_machine_only(tmp_path):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    assert trial_records.RDT.read(cache, here) is None
    record = kept(cache, here)
    assert trial_records.RDT.read(cache, here) == record
    others = [{"model": "EPYC"}, {"kernel": "6.12.0"}, {"options": "rw,cdp"}, {"options": "rw,mba_MBps"}]
    for number, other in enumerate(others):
        assert trial_records.RDT.read(cache, machine(tmp_path / str(number), **other)) is None
    assert trial_records.RDT.read(cache, machine(tmp_path / "same", options="rw,debug")) == record


@pytest.mark.parametrize("text", ["", "[]", "{", '{"identity": {}}'])
def test_a_broken_record_is_none(tmp_path, text):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    kept(cache, here)
    trial_records.RDT.file_of(cache, trial_records.RDT.identity(here)).write_text(text)
    assert trial_records.RDT.read(cache, here) is None


def test_facts_are_noted_anew_when_the_machine_was_tried_and_not_elsewhere(tmp_path):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    noted = tmp_path / "machine.json"
    assert trial_records.known(cache, noted, here) == ""
    facts = {**trial_records.RDT.identity(here), "resctrl": {"options": "rw"}, "rdt_trial": None}
    noted.write_text(json.dumps(facts))
    assert trial_records.known(cache, noted, here) == ""
    record = kept(cache, here)
    known = trial_records.known(cache, noted, here)
    assert known
    noted.write_text(json.dumps(facts | {"rdt_trial": record}))
    assert trial_records.known(cache, noted, here) == known
    elsewhere = machine(tmp_path / "b", model="EPYC")
    assert trial_records.known(cache, noted, elsewhere) == known
    kept(cache, elsewhere, "not isolated")
    assert trial_records.known(cache, noted, elsewhere) == known
    assert trial_records.known(tmp_path / "empty", noted, here) == known


def test_only_a_sweep_is_stamped():
    assert masks_stamp(set(), {"measured"}, {}) is None
    assert masks_stamp({"split-4"}, {"modelled"}, {}) is None
    assert masks_stamp({"split-4"}, {"measured"}, {})[0] == UNVERIFIED


@pytest.mark.parametrize(
    ("verdicts", "word", "said"),
    [
        ({}, VERIFIED, ["masks, isolation and throttles."]),
        ({"throttles": "no effect"}, VERIFIED, ["masks and isolation. Throttles: no effect. Of throttles."]),
        ({"isolation": "not isolated"}, UNVERIFIED, ["masks and throttles. Isolation: not isolated. Of isolation."]),
        ({"isolation": "undecided"}, UNVERIFIED, ["Isolation: undecided."]),
        ({"isolation": "not tried"}, UNVERIFIED, ["Isolation: not tried."]),
        ({"masks": "no effect on time"}, UNVERIFIED, ["isolation and throttles. Masks: no effect on time."]),
        ({"isolation": "a word that nobody knows"}, UNVERIFIED, ["masks and throttles."]),
    ],
)
def test_masks_are_verified_only_if_they_keep_a_neighbour_out(verdicts, word, said):
    stamp = masks_stamp({"split-4"}, {"measured", "emulated"}, {"rdt_trial": trial(**verdicts)})
    assert stamp[0] == word
    assert all(each in stamp[1] for each in said), stamp[1]


@pytest.mark.parametrize("record", [None, {}, {"at": "today"}, {"parts": []}, {"parts": {"masks": {}}, "at": "today"}])
def test_what_is_no_record_verifies_nothing(record):
    assert masks_stamp({"split-4"}, {"measured"}, {"rdt_trial": record})[0] == UNVERIFIED


def test_measured_steps_take_the_place_of_reported_ones_where_they_were_decided():
    reported = PERCENT.model_copy(update={"becomes": ((70, 90), (80, 90))})
    for verdict, steps, becomes in (
        ("some steps are equal", [[50, 100]], ((50, 100),)),
        ("works", [], ()),
        ("undecided", [], reported.becomes),
        ("not tried", [], reported.becomes),
    ):
        record = trial(throttles=verdict) | {"equal_steps": {"unit": "%", "steps": steps}}
        assert Tried.of(record).measured(reported).becomes == becomes
        assert Tried.of(record).measured(reported.model_copy(update={"unit": "MiB/s"})).becomes == reported.becomes


def test_of_several_caches_the_worst_is_shown():
    caches = [{"llc": n, "isolation": {"verdict": word, "said": "So."}} for n, word in enumerate(
        ("isolated", "not isolated", "undecided"))]  # fmt: skip
    assert together("isolation", caches) == {
        "verdict": "not isolated", "said": "Of 3 caches 1 pass; cache 1: So."
    }  # fmt: skip
    assert together("isolation", caches[:1]) == {"verdict": "isolated", "said": "So."}


def test_a_peak_that_is_measured_later_has_the_facts_noted_anew(tmp_path):
    """Then effects get their share of it; nothing is measured again."""
    noted, cache, here = tmp_path / "machine.json", tmp_path / "cache", machine(tmp_path / "a")
    facts = {"topology": topology_summary(read_topology(here)), "memory_peak": None}
    noted.write_text(json.dumps(trial_records.RDT.identity(here) | facts))
    assert trial_records.known(cache, noted, here, "memory_peak") == ""
    record = {"identity": trial_records.MEMORY_PEAK.identity(here), "at": "now", "curve": []}
    trial_records.MEMORY_PEAK.write(cache, record)
    assert trial_records.known(cache, noted, here, "memory_peak")
    assert trial_records.known(cache, noted, here) == ""  # that of way masks is another one
