"""A machine of the lab is captured, and what the fake makes of the capture shows what the kernel showed."""

import pytest

from castmates.machine.capture.capture import opened, read_files, record
from castmates.rdt.fake.recorded import replay
from castmates.rdt.resctrl.capabilities import capabilities
from castmates.trials import capture as take
from tests.lab import guest
from tests.unit.rdt import trees


def settled(files):
    """Without what the monitors go on counting."""
    return {name: text for name, text in files.items() if "mon_data" not in name}


KERNELS = ("linux-6.1", "linux-7.2")
SPECIAL = ("two-sockets-sparse-7.2", "sapphire-rapids", "cat-only", "monitoring-only", "sparse")


@pytest.mark.machines(*KERNELS, *SPECIAL)
def test_a_kernels_resctrl_is_replayed_as_it_was(machine, resctrl, tmp_path):
    offered = capabilities(resctrl)
    if offered.ways:
        resctrl.make("group1")
        resctrl.make("group2")
        resctrl.write("group1/schemata", f"L3:{offered.domains[0]}=f\n")
        resctrl.write("group2/cpus_list", "1\n")
        resctrl.write("group2/schemata", f"L3:{offered.domains[-1]}={offered.full ^ 0xF:x}\n")
    if offered.events:
        resctrl.make("mon_groups/group1")
    file = tmp_path / "machine.json.gz"
    record(file)
    before = trees.files_of(resctrl)
    with opened(file) as root:
        again = replay(root)
    assert settled(trees.files_of(again)) == settled(before)
    assert trees.files_of(again).keys() == before.keys()
    assert capabilities(again) == offered


@pytest.mark.machines("few-groups")
def test_the_monitors_are_read_under_a_known_load(state, compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(take.environments, "build", lambda *_: compiled.parent)
    file, said = tmp_path / "machine.json.gz", []
    take.capture(file, tmp_path, tmp_path / "cache", said.append)
    lines = dict(line.split(" ", 1) for line in read_files(file)["castmates/bandwidth"].splitlines())
    assert lines["program"].startswith("stream --mode read --bytes ")
    assert int(lines["read_bytes_per_s"]) > 0
    assert {"mbm_total_bytes_per_s", "mbm_total_missing"} & lines.keys()
    assert not guest.is_mounted()
    with opened(file) as root:
        assert replay(root).read("schemata").strip().endswith("L3:0=fff")
    assert not [line for line in said if "bandwidth" in line]
