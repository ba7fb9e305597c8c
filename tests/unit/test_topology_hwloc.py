"""Our reader of the topology against hwloc's: the same cores, packages, last-level caches, memory nodes and kinds."""

import pytest

from castmates.machine.topology import read_topology
from tests.unit import hwloc, sysfs

MACHINES = hwloc.recorded()
NO_NODES = "the kernel has no memory nodes, and lstopo always shows one"
UNNAMED = "the mask of each cache is empty: who shares it is not known, and lstopo gives each core its own"
NO_PACKAGES = "the kernel does not number packages (-1), and lstopo takes them from masks"
# What we see otherwise, and why. docs/placement.md says the same.
OTHERWISE = {
    "128arm-2pa2n8cluster4co": {"caches": "the kernel states 15 ways, and lstopo computes 128 of size and sets"},
    "16ia64-8n2s": {"packages": "two CPUs with the same number and different masks: the kernel's number counts"},
    "20s390-2g6s4c": {"packages": NO_PACKAGES, "nodes": NO_NODES},
    "256ppc-8n8s4t": {"packages": NO_PACKAGES},
    "2arm-2c": {"nodes": NO_NODES},
    "2i386-2c-nohugepage": {"nodes": NO_NODES},
    "2i386-2t-hugepagesizecount": {"nodes": NO_NODES},
    "2ps3-2t": {"nodes": NO_NODES},
    "40intel64-4n10c+pci-conflicts": dict.fromkeys(
        ("packages", "caches"), "two of the masks were broken on purpose: we read the lists, which were not"
    ),
    "64amd64-4s2n4ca2co": {"cores": "the two halves of a Bulldozer module are threads of a core, as for the kernel"},
    "64fake-4n2s2ca2c2t": {"caches": "invented: every CPU's list is that of CPU 0, and we read lists before masks"},
    "8ia64-2n2s2c": {"caches": UNNAMED},
    "8ia64-2s2c2t": {"caches": UNNAMED},
    "client": {"kinds": "invented without /proc/cpuinfo: lstopo asks for hybrid cores on x86 alone"},
    "fakeheterocpunuma": {"kinds": "cores of one capacity are of one kind, whatever their frequencies"},
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_look_the_same_to_both(name, tmp_path):
    ours = hwloc.seen_by_us(read_topology(hwloc.build(name, MACHINES[name], tmp_path)))
    assert ours.differs_from(hwloc.seen_then(MACHINES[name])) == set(OTHERWISE.get(name, {}))


def test_a_difference_would_be_seen(tmp_path):
    tree = hwloc.build("xeon", MACHINES["xeon"], tmp_path)
    sysfs.write(tree / "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0")
    wrong = hwloc.seen_by_us(read_topology(tree))
    assert wrong.differs_from(hwloc.seen_then(MACHINES["xeon"])) == {"cores"}
