"""The record speaks for one machine, and reaches the stamps."""

import json

import pytest

from castmates.analysis.effects.stamps import UNVERIFIED, VERIFIED, masks_stamp
from castmates.machine import trial_records
from castmates.machine.facts import topology_summary
from castmates.machine.topology import read_topology
from tests.unit import sysfs


def machine(root, model="Xeon", kernel="6.1.0", options="rw"):
    sysfs.write(root / "proc/cpuinfo", f"processor : 0\nmodel name : {model}\nmicrocode : 0x5")
    sysfs.write(root / "proc/sys/kernel/osrelease", kernel)
    sysfs.write(root / "proc/filesystems", "nodev\tresctrl")
    sysfs.write(root / "proc/self/mountinfo", f"30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl {options}")
    return root


def kept(cache, root, verdict="works"):
    record = {
        "identity": trial_records.WAY_MASKS.identity(root),
        "verdict": verdict,
        "said": "So it is.",
        "at": "today",
    }
    trial_records.WAY_MASKS.write(cache, record)
    return record


def test_a_record_is_found_by_its_own_machine_only(tmp_path):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    assert trial_records.WAY_MASKS.read(cache, here) is None
    record = kept(cache, here)
    assert trial_records.WAY_MASKS.read(cache, here) == record
    others = [{"model": "EPYC"}, {"kernel": "6.12.0"}, {"options": "rw,cdp"}, {"options": "rw,mba_MBps"}]
    for number, other in enumerate(others):
        assert trial_records.WAY_MASKS.read(cache, machine(tmp_path / str(number), **other)) is None
    assert trial_records.WAY_MASKS.read(cache, machine(tmp_path / "same", options="rw,debug")) == record


@pytest.mark.parametrize("text", ["", "[]", "{", '{"identity": {}}'])
def test_a_broken_record_is_none(tmp_path, text):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    kept(cache, here)
    trial_records.WAY_MASKS.file_of(cache, trial_records.WAY_MASKS.identity(here)).write_text(text)
    assert trial_records.WAY_MASKS.read(cache, here) is None


def test_facts_are_noted_anew_when_the_machine_was_tried_and_not_elsewhere(tmp_path):
    cache, here = tmp_path / "cache", machine(tmp_path / "a")
    noted = tmp_path / "machine.json"
    assert trial_records.known(cache, noted, here) == ""
    facts = {**trial_records.WAY_MASKS.identity(here), "resctrl": {"options": "rw"}, "way_masks": None}
    noted.write_text(json.dumps(facts))
    assert trial_records.known(cache, noted, here) == ""
    record = kept(cache, here)
    known = trial_records.known(cache, noted, here)
    assert known
    noted.write_text(json.dumps(facts | {"way_masks": record}))
    assert trial_records.known(cache, noted, here) == known
    elsewhere = machine(tmp_path / "b", model="EPYC")
    assert trial_records.known(cache, noted, elsewhere) == known
    kept(cache, elsewhere, "no effect on time")
    assert trial_records.known(cache, noted, elsewhere) == known
    assert trial_records.known(tmp_path / "empty", noted, here) == known


def test_only_a_sweep_is_stamped():
    assert masks_stamp(set(), {"measured"}, {}) is None
    assert masks_stamp({"split-4"}, {"modelled"}, {}) is None
    assert masks_stamp({"split-4"}, {"measured"}, {})[0] == UNVERIFIED


@pytest.mark.parametrize(
    ("verdict", "word"),
    [("works", VERIFIED), ("no effect on time", UNVERIFIED), ("undecided", UNVERIFIED), (None, UNVERIFIED)],
)
def test_only_masks_that_work_are_verified(verdict, word):
    record = {"verdict": verdict, "said": "So it is.", "at": "2026-01-05"}
    stamp = masks_stamp({"split-4"}, {"measured", "emulated"}, {"way_masks": record})
    assert stamp[0] == word
    assert "So it is." in stamp[1]


def test_a_peak_that_is_measured_later_has_the_facts_noted_anew(tmp_path):
    """Then effects get their share of it; nothing is measured again."""
    noted, cache, here = tmp_path / "machine.json", tmp_path / "cache", machine(tmp_path / "a")
    facts = {"topology": topology_summary(read_topology(here)), "memory_peak": None}
    noted.write_text(json.dumps(trial_records.WAY_MASKS.identity(here) | facts))
    assert trial_records.known(cache, noted, here, "memory_peak") == ""
    record = {"identity": trial_records.MEMORY_PEAK.identity(here), "at": "now", "curve": []}
    trial_records.MEMORY_PEAK.write(cache, record)
    assert trial_records.known(cache, noted, here, "memory_peak")
    assert trial_records.known(cache, noted, here) == ""  # that of way masks is another one
