"""Throttle steps that a processor is known to make equal are one partition."""

import pytest

from castmates.machine.quirks import equal_steps
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.study.partition_keys import CacheKeys
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.sweeps import cuts
from tests.unit import sysfs
from tests.unit.caches import PERCENT, cache

SKYLAKE = PERCENT.model_copy(update={"becomes": ((70, 90), (80, 90))})
CPU = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "85", "stepping": "4"}


def sweep(rates, bandwidth):
    notes = Notes()
    keys = CacheKeys.model_validate({"sweeps": [{"bandwidth": {"antagonists": rates}}]})
    found = cuts(keys, cache(shareable=0, bandwidth=bandwidth), "s.yaml", notes)
    return [cut.name for cut in found], list(map(str, notes.remarks))


def test_equal_steps_are_measured_once_with_a_sentence():
    names, notes = sweep("all", SKYLAKE)
    assert names == [f"antagonists-mb{rate}" for rate in (10, 20, 30, 40, 50, 60, 90)]
    assert "cache.sweeps.1.bandwidth.antagonists: 70 % does what 90 % does on this machine." in notes
    assert sweep(["80%", "90%"], SKYLAKE)[0] == ["antagonists-mb90"]
    assert len(sweep("all", PERCENT)[0]) == 9


@pytest.mark.parametrize(
    ("changed", "steps"),
    [({}, ((70, 90), (80, 90))), ({"stepping": "7"}, ()), ({"model": "106"}, ()), ({"vendor_id": "AuthenticAMD"}, ()),
     ({"stepping": "unknown"}, ())],
)  # fmt: skip
def test_only_the_processor_that_was_reported_has_them(changed, steps):
    assert equal_steps(CPU | changed) == steps
    assert equal_steps({}) == ()


def test_the_cache_of_such_a_machine_knows_it(tmp_path):
    sysfs.write(tmp_path / "proc/cpuinfo", "".join(f"{key}\t: {value}\n" for key, value in CPU.items()))
    sysfs.write(tmp_path / "proc/self/mountinfo", "30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl rw")
    tree = {
        "schemata": "L3:0=7ff\nMB:0=100", "info/L3/cbm_mask": "7ff", "info/L3/num_closids": "16",
        "info/L3/shareable_bits": "600", "info/MB/num_closids": "8", "info/MB/min_bandwidth": "10",
        "info/MB/bandwidth_gran": "10", "info/MB/delay_linear": "1",
    }  # fmt: skip
    for path, text in tree.items():
        sysfs.write(tmp_path / "sys/fs/resctrl" / path, text)
    assert read_cache(tmp_path).bandwidth == SKYLAKE
