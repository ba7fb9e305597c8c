"""The record of whether counts are right: it speaks for one machine, and what cannot be read is none."""

import pytest

from castmates.machine import trial_records


def machine(root, model="A", kernel="6.1"):
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(f"model name : {model}\nmicrocode : 0x1\n")
    (root / "proc/sys/kernel/osrelease").write_text(f"{kernel}\n")
    return root


def test_a_record_speaks_for_the_machine_that_it_was_made_on(tmp_path):
    here, cache = machine(tmp_path / "here"), tmp_path / "cache"
    assert trial_records.COUNTERS.read(cache, here) is None
    assert trial_records.counters_verified(cache, here) == {}
    record = {"identity": trial_records.COUNTERS.identity(here), "events": {"page-faults": "verified"}}
    trial_records.COUNTERS.write(cache, record)
    assert trial_records.COUNTERS.read(cache, here) == record
    assert trial_records.counters_verified(cache, here) == {"page-faults": "verified"}
    assert trial_records.COUNTERS.read(cache, machine(tmp_path / "other", model="B")) is None
    assert trial_records.COUNTERS.read(cache, machine(tmp_path / "newer", kernel="6.12")) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"identity": null}', "\xff"])
def test_a_damaged_record_is_none(tmp_path, text):
    here, cache = machine(tmp_path / "here"), tmp_path / "cache"
    file = trial_records.COUNTERS.file_of(cache, trial_records.COUNTERS.identity(here))
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    assert trial_records.COUNTERS.read(cache, here) is None
