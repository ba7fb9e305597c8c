"""What of a last-level cache a program can use, where sub-NUMA clusters divide it."""

from dataclasses import replace

import pytest

from castmates.machine.topology import CachePart, one_last_level_cache, read_topology
from castmates.trials.rdt.trial import places
from tests.unit import machines, sysfs
from tests.unit.caches import cache

MIB = 1 << 20
SOCKET = 36 * MIB  # of the Xeon: twelve ways


def test_the_nodes_within_a_cache_divide_it():
    for name in machines.MACHINES:
        clusters = {llc.clusters for llc in machines.topology(name).llcs}
        assert clusters == ({2} if name == "synthetic-xeon-2s-snc2" else {1} if clusters else set())
    whole, divided = machines.topology("synthetic-xeon-2s"), machines.topology("synthetic-xeon-2s-snc2")
    assert whole.cache_parts()[0] == CachePart(0, None, SOCKET, whole.llcs[0].cpus)
    parts = divided.cache_parts()
    assert [(part.llc, part.node, part.bytes) for part in parts] == [(n // 2, n, SOCKET // 2) for n in range(4)]
    assert [part.cpus for part in parts] == [node.cpus for node in divided.nodes]


def test_emulated_nodes_divide_nothing(tmp_path):
    """With numa=fake every node has the CPUs of all."""
    socket = machines.xeon().nodes
    fake = replace(machines.xeon(), nodes={0: socket[0], 1: socket[0], 2: socket[1], 3: socket[1]}, distances=[])
    assert {llc.clusters for llc in read_topology(sysfs.build(tmp_path, fake)).llcs} == {1}


@pytest.mark.parametrize("name", ["synthetic-xeon-2s", "synthetic-xeon-2s-snc2", "synthetic-epyc-ccx"])
def test_one_cache_is_read_as_all_are(name, tmp_path):
    root = sysfs.build(tmp_path, machines.MACHINES[name]())
    assert one_last_level_cache(root) == read_topology(root).llcs[0]


def test_without_sysfs_there_is_no_cache(tmp_path):
    assert one_last_level_cache(tmp_path) is None


def test_masks_are_tried_within_one_cluster_of_every_cache(tmp_path):
    """A stream in another cluster would evict nothing, and masks that work would be found to do nothing."""
    topology = machines.topology("synthetic-xeon-2s-snc2")
    tried = places(topology, cache(12, way_bytes=None), tmp_path)
    node_of = {cpu.id: cpu.node for cpu in topology.cpus}
    assert [(place.llc, place.package, place.thorough) for place in tried] == [(0, 0, True), (1, 1, True)]
    for place in tried:
        setting = place.setting
        assert setting.chase_cpu != setting.evictor_cpu
        assert len({node_of[cpu] for cpu in setting.cores}) == 1
        assert {setting.chase_cpu, setting.evictor_cpu} <= set(setting.cores)
        assert setting.cache_bytes == SOCKET // 2


def test_the_first_cache_of_a_package_is_tried_thoroughly_and_all_others_shortly(tmp_path):
    topology = machines.topology("synthetic-epyc-ccx")
    tried = places(topology, cache(16, way_bytes=None, shareable=0), tmp_path)
    assert [place.llc for place in tried] == [llc.id for llc in topology.llcs]
    assert sum(place.thorough for place in tried) == len({cpu.package for cpu in topology.cpus})
    assert all(place.setting.cores for place in tried)
