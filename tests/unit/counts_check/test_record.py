"""The record of whether counts are right: it speaks for one machine, and what cannot be read is none."""

import pytest

from castmates.machine import counts_record


def machine(root, model="A", kernel="6.1"):
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(f"model name : {model}\nmicrocode : 0x1\n")
    (root / "proc/sys/kernel/osrelease").write_text(f"{kernel}\n")
    return root


def test_a_record_speaks_for_the_machine_that_it_was_made_on(tmp_path):
    here, cache = machine(tmp_path / "here"), tmp_path / "cache"
    assert counts_record.read(cache, here) is None
    assert counts_record.verdicts(cache, here) == {}
    record = {"identity": counts_record.identity(here), "events": {"page-faults": "verified"}}
    counts_record.write(cache, record)
    assert counts_record.read(cache, here) == record
    assert counts_record.verdicts(cache, here) == {"page-faults": "verified"}
    assert counts_record.read(cache, machine(tmp_path / "other", model="B")) is None
    assert counts_record.read(cache, machine(tmp_path / "newer", kernel="6.12")) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"identity": null}', "\xff"])
def test_a_damaged_record_is_none(tmp_path, text):
    here, cache = machine(tmp_path / "here"), tmp_path / "cache"
    file = counts_record.file_of(cache, counts_record.identity(here))
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    assert counts_record.read(cache, here) is None
