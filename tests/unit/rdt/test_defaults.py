"""What holds where the kernel is silent, or this process may not."""

import os
from pathlib import Path

import pytest

from castmates.rdt.resctrl import foreign, mounting
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.study.cache import Bandwidth
from tests.unit.rdt import trees


@pytest.mark.parametrize("absent", ["info/MB/min_bandwidth", "info/MB/bandwidth_gran"])
def test_a_throttle_without_its_numbers_goes_by_tens(tmp_path, absent):
    trees.record(tmp_path, {path: text for path, text in trees.XEON.items() if path != absent})
    assert read_cache(tmp_path).bandwidth == Bandwidth(unit="%", least=10, step=10, most=100, by_core=True)


@pytest.mark.parametrize(
    ("known", "user", "expected"),
    [("ext4", 0, True), ("ext4", 1000, True), ("resctrl", 1000, True), ("resctrl", 0, False)],
)
def test_mounting_is_hopeless_without_the_file_system_or_without_root(monkeypatch, known, user, expected):
    monkeypatch.setattr(mounting, "file_systems", lambda: ["nodev", "proc", "nodev", known])
    monkeypatch.setattr(mounting, "why_not_mounted", lambda: "because")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert mounting.hopeless() == ("because" if expected else "")


@pytest.mark.parametrize("late", [0, 1])
def test_pqos_is_in_use_while_the_very_process_of_its_lock_lives(monkeypatch, tmp_path, late):
    lock, me = tmp_path / "lock", os.getpid()
    lock.write_text(f"{me} {foreign.born_of(me) + late}\n")
    monkeypatch.setattr(foreign, "PQOS_LOCK", lock)
    name = Path("/proc/self/comm").read_text().strip()
    assert foreign.pqos_user() == ("" if late else f"process {me} ({name})")
