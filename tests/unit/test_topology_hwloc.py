"""Our reader of the topology against hwloc's: the same cores, packages, last-level caches and memory nodes."""

import pytest

from castmates.machine.topology import read_topology
from tests.unit import hwloc, sysfs
from tests.unit.hwloc import HERE, INVENTED, RECORDED


@pytest.mark.parametrize("name", [*INVENTED, HERE])
def test_recorded_machines_look_the_same_to_both(name, tmp_path):
    topology = read_topology(hwloc.recorded_tree(name, tmp_path))
    assert hwloc.seen_by_us(topology) == hwloc.seen_by_hwloc((RECORDED / f"{name}.xml").read_text())


def test_a_difference_would_be_seen(tmp_path):
    tree = hwloc.recorded_tree("xeon", tmp_path)
    sysfs.write(tree / "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0")
    wrong = hwloc.seen_by_us(read_topology(tree))
    assert wrong.cores != hwloc.seen_by_hwloc((RECORDED / "xeon.xml").read_text()).cores
