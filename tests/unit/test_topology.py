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
from tests.unit.snapshots import assert_as_before
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


FOUR = [(0,), (1,), (2,), (3,)]
CLUSTERS = [Cache(1, 64, 4, FOUR, kind="Data"), Cache(2, 1024, 0, [(0, 1), (2, 3)])]
XEON = sysfs.xeon()
TREES = {
    "two sockets with SMT": XEON,
    "EPYC: domains keep the kernel's ids": sysfs.epyc(),
    "domains without id files are numbered in order": Machine(FOUR, [Cache(3, 1024, 16, [(2, 3), (0, 1)])]),
    "a single core, and nothing else": Machine([(0,)]),
    "Arm without L3: the cluster's L2": Machine(FOUR, CLUSTERS, capacity={0: 485, 1: 485, 2: 1024, 3: 1024}),
    "a hybrid client, with cores outside the L3": sysfs.client(),
    "an offline sibling is no sibling": replace(XEON, offline=[2, 4]),
    "a container sees all but may use some": replace(XEON, allowed=[1, 5, 6]),
    "isolated and tickless CPUs, distances": replace(
        XEON, isolated=[1, 2], tickless=[2], distances=[(10, 21), (21, 10)], memory=[1]
    ),
    "a node without memory": replace(XEON, empty=[0]),
}


def seen(topology):
    """Every fact of a topology, a line for each CPU, cache and node."""
    yield from (*topology.cpus, *topology.llcs, *topology.nodes)
    yield f"cores {topology.cores()} allowed {topology.allowed}"
    yield f"isolated {topology.isolated} tickless {topology.tickless} memory {topology.memory}"


def test_machines_are_seen_as_they_are(tmp_path):
    trees = {name: sysfs.build(tmp_path / str(at), tree) for at, (name, tree) in enumerate(TREES.items())}
    assert_as_before("topologies", {name: seen(read_topology(tree)) for name, tree in trees.items()})


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


def test_this_machine_under_a_narrow_affinity():
    cpu = max(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
        "from castmates.machine.topology import read_topology\n"
        "print(read_topology().allowed)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"({cpu},)"
