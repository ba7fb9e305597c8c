"""Writes sysfs and procfs trees of invented or recorded machines for tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from castmates.study.cpus import format_cpu_list


@dataclass(frozen=True)
class Cache:
    """A cache of one level, with the sets of CPUs that share one each."""

    level: int
    kib: int
    ways: int
    shared: Sequence[Sequence[int]]
    ids: Sequence[int] | None = None  # None: the kernel shows no id file
    kind: str = "Unified"


@dataclass(frozen=True)
class Machine:
    """What a tree is written from."""

    cores: Sequence[Sequence[int]]  # logical CPUs of each core
    caches: Sequence[Cache] = ()
    packages: Mapping[int, Iterable[int]] = field(default_factory=dict)
    nodes: Mapping[int, Iterable[int]] = field(default_factory=dict)
    offline: Iterable[int] = ()
    devices: Mapping[str, Iterable[int]] = field(default_factory=dict)
    capacity: Mapping[int, int] = field(default_factory=dict)
    allowed: Iterable[int] | None = None
    memory: Iterable[int] | None = None  # nodes that we may use
    distances: Sequence[Sequence[int]] = ()  # of each node, in their order
    empty: Iterable[int] = ()  # nodes without memory
    isolated: Iterable[int] = ()
    tickless: Iterable[int] = ()


def write(path: Path, text: object) -> None:
    """Write one kernel file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def build(root: Path, machine: Machine) -> Path:
    """Write the tree below `root` and return it."""
    base = root / "sys/devices/system/cpu"
    offline = set(machine.offline)
    everyone = sorted(cpu for core in machine.cores for cpu in core)
    online = [cpu for cpu in everyone if cpu not in offline]
    write(base / "online", format_cpu_list(online))
    write(base / "possible", format_cpu_list(everyone))
    package_of = {cpu: number for number, cpus in machine.packages.items() for cpu in cpus}
    for number, core in enumerate(machine.cores):
        for cpu in core:
            _write_cpu(
                base / f"cpu{cpu}",
                number,
                [c for c in core if c not in offline],
                package_of.get(cpu, 0),
                [c for c in online if package_of.get(c, 0) == package_of.get(cpu, 0)],
                cpu in offline,
            )
            if cpu in machine.capacity:
                write(base / f"cpu{cpu}/cpu_capacity", machine.capacity[cpu])
            if cpu not in offline:
                _write_caches(base / f"cpu{cpu}/cache", cpu, machine.caches, offline)
    write(base / "isolated", format_cpu_list(machine.isolated))
    write(base / "nohz_full", format_cpu_list(machine.tickless) or "(null)")  # as some kernels write it
    for number, (node, cpus) in enumerate(machine.nodes.items()):
        here = root / f"sys/devices/system/node/node{node}"
        size = 0 if node in machine.empty else 1024
        write(here / "cpulist", format_cpu_list(set(cpus) - offline))
        write(here / "cpumap", as_mask(set(cpus) - offline))
        write(here / "meminfo", f"Node {node} MemTotal:       {size} kB\nNode {node} MemFree: 1 kB")
        if machine.distances:
            write(here / "distance", " ".join(map(str, machine.distances[number])))
    for device, cpus in machine.devices.items():
        write(root / f"sys/devices/{device}/cpus", format_cpu_list(cpus))
    told = {"Cpus": machine.allowed, "Mems": machine.memory}
    lines = [f"{what}_allowed_list:\t{format_cpu_list(those)}" for what, those in told.items() if those is not None]
    if lines:
        write(root / "proc/self/status", "\n".join(["Name:\tx", *lines]))
    return root


def as_mask(cpus: Iterable[int]) -> str:
    """As the kernel writes it: hexadecimal, in groups of 32 bits."""
    digits = f"{sum(1 << cpu for cpu in cpus):x}"
    padded = digits.zfill(8 * -(-len(digits) // 8))
    return ",".join(padded[at : at + 8] for at in range(0, len(padded), 8))


def _write_cpu(
    here: Path, core: int, siblings: Sequence[int], package: int, together: Sequence[int], offline: bool
) -> None:
    here.mkdir(parents=True)
    write(here / "online", 0 if offline else 1)
    if not offline:  # x86 takes the topology of an offline CPU away
        write(here / "topology/core_id", core % 4)  # repeats, as on machines with several packages
        write(here / "topology/physical_package_id", package)
        write(here / "topology/thread_siblings_list", format_cpu_list(siblings))
        write(here / "topology/thread_siblings", as_mask(siblings))
        write(here / "topology/core_siblings", as_mask(together))


def _write_caches(folder: Path, cpu: int, caches: Sequence[Cache], offline: set[int]) -> None:
    mine = [(cache, n) for cache in caches for n, shared in enumerate(cache.shared) if cpu in shared]
    for index, (cache, n) in enumerate(mine):
        here = folder / f"index{index}"
        write(here / "level", cache.level)
        write(here / "type", cache.kind)
        write(here / "size", f"{cache.kib}K")
        write(here / "ways_of_associativity", cache.ways)
        if cache.ways:
            write(here / "coherency_line_size", 64)
            write(here / "physical_line_partition", 1)
            write(here / "number_of_sets", cache.kib * 1024 // 64 // cache.ways)
        write(here / "shared_cpu_list", format_cpu_list(set(cache.shared[n]) - offline))
        write(here / "shared_cpu_map", as_mask(set(cache.shared[n]) - offline))
        if cache.ids is not None:
            write(here / "id", cache.ids[n])


def private(cores: Sequence[Sequence[int]]) -> list[Cache]:
    """L1d and L2 of each core, as most machines have them."""
    numbers = range(len(cores))
    return [Cache(1, 32, 8, cores, numbers, "Data"), Cache(2, 1024, 16, cores, numbers)]


def xeon() -> Machine:
    """Two sockets of two cores with SMT and an 11-way L3 each."""
    cores = [(0, 4), (1, 5), (2, 6), (3, 7)]
    sockets = {0: (0, 1, 4, 5), 1: (2, 3, 6, 7)}
    l3 = Cache(3, 36608, 11, list(sockets.values()), (0, 1))
    return Machine(cores, [*private(cores), l3], sockets, sockets)


def epyc() -> Machine:
    """Two sockets of eight two-core complexes, whose L3 ids have a gap: 0-7 and 16-23."""
    cores = [(cpu, cpu + 32) for cpu in range(32)]
    complexes = [(*cores[2 * n], *cores[2 * n + 1]) for n in range(16)]
    l3 = Cache(3, 32768, 16, complexes, (*range(8), *range(16, 24)))
    sockets = {n: [cpu for complex_ in complexes[8 * n : 8 * n + 8] for cpu in complex_] for n in (0, 1)}
    return Machine(cores, [*private(cores), l3], sockets, sockets)


def client() -> Machine:
    """Two performance cores with SMT, four efficient ones that share an L2, and two without L3."""
    cores = [(0, 1), (2, 3), (4,), (5,), (6,), (7,), (8,), (9,)]
    l2 = Cache(2, 2048, 16, [(0, 1), (2, 3), (4, 5, 6, 7), (8, 9)], (0, 1, 4, 8))
    l3 = Cache(3, 24576, 12, [range(8)], (0,))
    kinds = {"cpu_core": range(4), "cpu_atom": range(4, 10)}
    return Machine(cores, [l2, l3], {0: range(10)}, {0: range(10)}, devices=kinds)
