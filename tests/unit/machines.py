"""Synthetic machines, built from public facts about real kinds: none of them was recorded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from castmates.files import memory_folder
from castmates.machine.capture.capture import read_captured_topology, record
from castmates.machine.topology import Topology
from castmates.project import layout_of
from castmates.study.placement.layout import Layout
from tests.unit import sysfs
from tests.unit.sysfs import Cache, Machine, private


def threads(cores: Iterable[int], total: int) -> list[tuple[int, int]]:
    """CPUs of cores with SMT, as most firmware numbers them: first all first threads."""
    return [(core, core + total) for core in cores]


def flat(cores: Iterable[Sequence[int]]) -> list[int]:
    return [cpu for core in cores for cpu in core]


def xeon() -> Machine:
    """Two sockets of eight cores with SMT, one L3 and one node each."""
    sockets = [threads(range(8 * n, 8 * n + 8), 16) for n in (0, 1)]
    cores = [*sockets[0], *sockets[1]]
    both = dict(enumerate(map(flat, sockets)))
    l3 = Cache(3, 36864, 12, list(both.values()), (0, 1))
    return Machine(cores, [*private(cores), l3], both, both, distances=[(10, 21), (21, 10)])


def xeon_snc() -> Machine:
    """The same with sub-NUMA clustering: two nodes in each socket, whose L3 keeps its id."""
    whole = xeon()
    nodes = {n: flat(whole.cores[4 * n : 4 * n + 4]) for n in range(4)}
    far = [(10, 12, 21, 21), (12, 10, 21, 21), (21, 21, 10, 12), (21, 21, 12, 10)]
    return replace(whole, nodes=nodes, distances=far)


def epyc() -> Machine:
    """Two sockets of eight complexes with three cores and one L3 each; the ids have a gap."""
    cores = threads(range(48), 48)
    complexes = [flat(cores[3 * n : 3 * n + 3]) for n in range(16)]
    sockets = {n: flat(cores[24 * n : 24 * n + 24]) for n in (0, 1)}
    l3 = Cache(3, 16384, 16, complexes, (*range(8), *range(16, 24)))
    return Machine(cores, [l3], sockets, sockets, distances=[(10, 32), (32, 10)])


def hybrid() -> Machine:
    """Six performance cores with SMT, two clusters of four efficient cores, two low-power ones outside the L3."""
    cores = [*((2 * n, 2 * n + 1) for n in range(6)), *((cpu,) for cpu in range(12, 22))]
    l2 = Cache(2, 2048, 16, [*cores[:6], range(12, 16), range(16, 20), range(20, 22)], range(9))
    l3 = Cache(3, 24576, 12, [range(20)], (0,))
    kinds = {"cpu_core": range(12), "cpu_atom": range(12, 20), "cpu_lowpower": range(20, 22)}
    return Machine(cores, [l2, l3], {0: range(22)}, {0: range(22)}, devices=kinds)


def arm() -> Machine:
    """Eighty cores without SMT and without an L3 that the kernel knows of."""
    cores = [(cpu,) for cpu in range(80)]
    return Machine(cores, [Cache(2, 1024, 8, cores, range(80))], {0: range(80)}, {0: range(80)})


def big_little() -> Machine:
    """Four slow and four fast Arm cores under one L3."""
    cores = [(cpu,) for cpu in range(8)]
    capacity = {cpu: 446 if cpu < 4 else 1024 for cpu in range(8)}
    return Machine(cores, [Cache(3, 2048, 16, [range(8)])], {0: range(8)}, {0: range(8)}, capacity=capacity)


def single() -> Machine:
    """One core."""
    return Machine([(0,)], [*private([(0,)]), Cache(3, 8192, 16, [(0,)], (0,))], {0: (0,)}, {0: (0,)})


def smt_off() -> Machine:
    """The first socket of the Xeon, its second threads offline except on core 5."""
    cores = xeon().cores[:8]
    l3 = Cache(3, 36864, 12, [flat(cores)], (0,))
    away = [second for _, second in cores if second != 21]
    return Machine(cores, [*private(cores), l3], {0: flat(cores)}, {0: flat(cores)}, offline=away)


def container() -> Machine:
    """The Xeon within a cpuset: two whole cores and a half one of the first socket, half a one of the second."""
    return replace(xeon(), allowed=(2, 18, 3, 19, 5, 12), memory=(0,))


def isolated() -> Machine:
    """Eight cores, six of them isolated and tickless, all of them given to us."""
    cores = [(cpu,) for cpu in range(8)]
    l3 = Cache(3, 16384, 16, [range(8)], (0,))
    return Machine(cores, [l3], {0: range(8)}, {0: range(8)}, isolated=range(2, 8), tickless=range(2, 8))


def memory_only() -> Machine:
    """Two sockets, of which the second has no memory, and a node of memory alone."""
    cores = [(cpu,) for cpu in range(8)]
    l3 = Cache(3, 16384, 16, [range(4), range(4, 8)], (0, 1))
    nodes = {0: range(4), 1: range(4, 8), 2: ()}
    far = [(10, 20, 14), (20, 10, 24), (14, 24, 10)]
    return Machine(cores, [l3], {0: range(4), 1: range(4, 8)}, nodes, distances=far, empty=(1,))


MACHINES: dict[str, Callable[[], Machine]] = {
    "synthetic-xeon-2s": xeon,
    "synthetic-xeon-2s-snc2": xeon_snc,
    "synthetic-epyc-ccx": epyc,
    "synthetic-hybrid-client": hybrid,
    "synthetic-arm-no-l3": arm,
    "synthetic-big-little": big_little,
    "synthetic-single-core": single,
    "synthetic-smt-off": smt_off,
    "synthetic-container": container,
    "synthetic-isolcpus": isolated,
    "synthetic-memory-only-node": memory_only,
}


@cache
def topology(name: str) -> Topology:
    """A synthetic machine as the reader sees it, by way of a file like those of `doctor --capture`."""
    with TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder, f"{name}.json.gz")
        record(file, sysfs.build(Path(folder, "root"), MACHINES[name]()))
        return read_captured_topology(file)


@cache
def layout(name: str) -> Layout:
    return layout_of(topology(name))
