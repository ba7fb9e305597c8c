import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.machine.topology import parse_cpu_list, read_topology
from castmates.study.cpus import format_cpu_list
from tests.unit import sysfs
from tests.unit.sysfs import Cache, Machine


@given(st.sets(st.integers(0, 300)))
def test_cpu_lists_survive_the_round_trip(cpus):
    assert parse_cpu_list(format_cpu_list(cpus)) == sorted(cpus)


def test_cpu_list_notation():
    assert parse_cpu_list("0-3,8") == [0, 1, 2, 3, 8]
    assert parse_cpu_list(" 8, 1-2,2\n") == [1, 2, 8]
    assert parse_cpu_list("") == []
    assert format_cpu_list([8, 0, 1, 2, 3, 3]) == "0-3,8"


@pytest.mark.parametrize("text", ["3-0", "a", "1-", "-1", "0-99999999", "1;2", "0-7:2/4", "²", "99999"])
def test_a_bad_cpu_list_is_named(text):
    with pytest.raises(CastmatesError, match="CPU list"):
        parse_cpu_list(text)


def test_xeon_with_two_sockets_and_smt(tmp_path):
    topology = read_topology(sysfs.build(tmp_path, sysfs.xeon()))
    cpu = topology.cpus[6]
    assert (cpu.id, cpu.core, cpu.package, cpu.node, cpu.llc, cpu.siblings) == (6, 2, 1, 1, 1, (2, 6))
    assert [(llc.id, llc.level, llc.bytes, llc.ways, llc.cpus) for llc in topology.llcs] == [
        (0, 3, 36608 * 1024, 11, (0, 1, 4, 5)),
        (1, 3, 36608 * 1024, 11, (2, 3, 6, 7)),
    ]
    assert [(node.id, node.bytes, node.cpus) for node in topology.nodes][1] == (1, 1 << 20, (2, 3, 6, 7))
    assert topology.cores() == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert topology.allowed == tuple(range(8))
    assert {cpu.kind for cpu in topology.cpus} == {None}


def test_epyc_domains_keep_the_kernels_ids(tmp_path):
    topology = read_topology(sysfs.build(tmp_path, sysfs.epyc()))
    assert [llc.id for llc in topology.llcs] == [*range(8), *range(16, 24)]
    assert topology.cpus[16].llc == 16
    assert topology.cpus[63].llc == 23
    assert topology.llcs[8].cpus == (16, 17, 48, 49)
    assert len({cpu.core for cpu in topology.cpus}) == 32


def test_domains_without_id_files_are_numbered_in_order(tmp_path):
    cores = [(0,), (1,), (2,), (3,)]
    l3 = Cache(3, 1024, 16, [(2, 3), (0, 1)])
    topology = read_topology(sysfs.build(tmp_path, Machine(cores, [l3])))
    assert [(llc.id, llc.cpus) for llc in topology.llcs] == [(0, (0, 1)), (1, (2, 3))]


def test_single_core_without_anything_else(tmp_path):
    topology = read_topology(sysfs.build(tmp_path, Machine([(0,)])))
    (cpu,) = topology.cpus
    assert (cpu.core, cpu.node, cpu.llc, cpu.siblings, cpu.online) == (0, None, None, (0,), True)
    assert topology.llcs == topology.nodes == ()


def test_arm_without_l3_takes_the_cluster_l2(tmp_path):
    cores = [(0,), (1,), (2,), (3,)]
    caches = [Cache(1, 64, 4, cores, kind="Data"), Cache(2, 1024, 0, [(0, 1), (2, 3)])]
    machine = Machine(cores, caches, capacity={0: 485, 1: 485, 2: 1024, 3: 1024})
    topology = read_topology(sysfs.build(tmp_path, machine))
    assert [(llc.id, llc.level, llc.ways, llc.cpus) for llc in topology.llcs] == [
        (0, 2, None, (0, 1)),
        (1, 2, None, (2, 3)),
    ]
    assert [cpu.kind for cpu in topology.cpus] == ["capacity 485"] * 2 + ["capacity 1024"] * 2


def test_hybrid_client_and_its_cores_outside_the_l3(tmp_path):
    topology = read_topology(sysfs.build(tmp_path, sysfs.client()))
    assert [cpu.kind for cpu in topology.cpus] == ["core"] * 4 + ["atom"] * 6
    assert [(llc.id, llc.cpus) for llc in topology.llcs] == [(0, tuple(range(8)))]
    assert [cpu.llc for cpu in topology.cpus[7:]] == [0, None, None]
    assert topology.cores()[:3] == ((0, 1), (2, 3), (4,))


def test_an_offline_sibling_is_no_sibling(tmp_path):
    xeon = sysfs.xeon()
    machine = Machine(xeon.cores, xeon.caches, xeon.packages, xeon.nodes, offline=[2, 4])
    topology = read_topology(sysfs.build(tmp_path, machine))
    away = topology.cpus[4]
    assert (away.online, away.core, away.llc, away.node, away.siblings) == (False, None, None, None, ())
    assert topology.cpus[0].siblings == (0,)
    assert topology.cpus[6].core == 6
    assert topology.llcs[0].cpus == (0, 1, 5)
    assert topology.allowed == (0, 1, 3, 5, 6, 7)


def test_a_container_sees_all_but_may_use_some(tmp_path):
    xeon = sysfs.xeon()
    machine = Machine(xeon.cores, xeon.caches, xeon.packages, xeon.nodes, allowed=[1, 5, 6])
    topology = read_topology(sysfs.build(tmp_path, machine))
    assert topology.allowed == (1, 5, 6)
    assert topology.cores() == ((1, 5), (6,))
    assert len(topology.cpus) == 8


def test_unreadable_and_garbled_files_are_not_known(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    base = root / "sys/devices/system/cpu"
    sysfs.write(base / "cpu0/topology/thread_siblings_list", "garbage")
    sysfs.write(base / "cpu0/topology/thread_siblings", "garbage")
    sysfs.write(base / "cpu0/topology/physical_package_id", "-1")
    sysfs.write(base / "cpu0/cache/index2/size", "?")
    (base / "cpu1/cache/index2/level").unlink()
    topology = read_topology(root)
    assert (topology.cpus[0].siblings, topology.cpus[0].core, topology.cpus[0].package) == ((), None, None)
    assert topology.llcs[0].bytes is None
    assert topology.cpus[1].llc is None
    assert (0,) in topology.cores()


def test_an_empty_tree_is_an_empty_topology(tmp_path):
    topology = read_topology(tmp_path)
    assert topology.cpus == topology.llcs == topology.nodes == topology.allowed == ()


def test_isolated_and_tickless_cpus_and_the_distances_of_nodes(tmp_path):
    xeon = sysfs.xeon()
    machine = replace(xeon, isolated=[1, 2], tickless=[2], distances=[(10, 21), (21, 10)], memory=[1])
    topology = read_topology(sysfs.build(tmp_path / "one", machine))
    assert (topology.isolated, topology.tickless) == ((1, 2), (2,))
    assert [node.distances for node in topology.nodes] == [((0, 10), (1, 21)), ((0, 21), (1, 10))]
    assert topology.memory == (1,)
    plain = read_topology(sysfs.build(tmp_path / "two", replace(xeon, empty=[0])))
    assert (plain.isolated, plain.tickless, plain.memory) == ((), (), (1,))
    assert plain.nodes[0].distances == ()


def test_this_machine_under_a_narrow_affinity():
    cpu = max(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
        "from castmates.machine.topology import read_topology\n"
        "print(read_topology().allowed)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"({cpu},)"
