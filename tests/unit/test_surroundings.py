"""What lies beside a launch's CPUs, on invented machines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.machine.topology import read_topology
from castmates.runner.rounds.ledger_load import Domain, Surroundings, surroundings
from tests.unit import sysfs


@pytest.fixture(scope="module")
def xeon(tmp_path_factory):
    return read_topology(sysfs.build(tmp_path_factory.mktemp("xeon"), sysfs.xeon()))


def test_siblings_are_quiet_and_the_rest_of_the_cache_is_around(xeon):
    assert surroundings(xeon, [0]) == Surroundings((4,), (Domain("l3:0", 4, (1, 5)),), caches=(0,))


def test_a_launch_on_two_sockets_has_two_domains(xeon):
    both = surroundings(xeon, [0, 2])
    assert both.quiet == (4, 6)
    assert both.neighbours == {"l3:0": (1, 5), "l3:1": (3, 7)}


def test_a_launch_that_holds_the_whole_domain_has_no_neighbours(xeon):
    assert surroundings(xeon, [0, 4, 1, 5]) == Surroundings(caches=(0,))
    # siblings are watched strictly, not as neighbours
    assert surroundings(xeon, [0, 1]) == Surroundings((4, 5), caches=(0,))


def test_a_machine_that_shows_no_cache_has_the_ring_of_its_package_alone(tmp_path):
    topology = read_topology(sysfs.build(tmp_path, sysfs.Machine([(0,), (1,)])))
    assert surroundings(topology, [0]) == Surroundings(packages=(Domain("package0", 2, (1,)),))


def test_an_offline_sibling_is_not_watched(tmp_path):
    machine = sysfs.Machine([(0, 2), (1, 3)], [sysfs.Cache(3, 1024, 8, [(0, 1, 2, 3)], (0,))], offline=[2])
    topology = read_topology(sysfs.build(tmp_path, machine))
    assert surroundings(topology, [0]) == Surroundings((), (Domain("l3:0", 3, (1, 3)),), caches=(0,))


@given(cpus=st.sets(st.integers(0, 7), min_size=1))
def test_every_cpu_of_a_used_cache_is_ours_or_quiet_or_a_neighbour_and_only_one_of_these(xeon, cpus):
    beside = surroundings(xeon, cpus)
    around = [cpu for domain in beside.domains for cpu in domain.neighbours]
    everyone = [*cpus, *beside.quiet, *around]
    assert len(everyone) == len(set(everyone))
    used = {cpu for llc in xeon.llcs if cpus & set(llc.cpus) for cpu in llc.cpus}
    assert set(everyone) == used
