"""Which processors, last-level caches and memory nodes there are, read from sysfs."""

import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.kernel_files import CPU_DIR, read_int, read_text
from castmates.linux.nvml import memory_nodes
from castmates.linux.processes import status_of
from castmates.study.placement.layout import Cpu as Seat
from castmates.study.placement.layout import Layout, clusters_of

HIGHEST_CPU = 65535
HYBRID_DEVICES = {"cpu_core": "core", "cpu_atom": "atom", "cpu_lowpower": "lowpower"}


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU; what the kernel does not show (an offline CPU, a container) is None or empty."""

    id: int
    core: int | None  # lowest online CPU of the same core: unique on the machine, unlike sysfs' core_id
    package: int | None
    node: int | None
    llc: int | None  # id of its last-level cache; None too where others have a level that it lacks
    siblings: tuple[int, ...]  # online CPUs of the same core, itself included
    online: bool
    kind: str | None  # on machines with unequal cores: "core", "atom", "lowpower", "capacity 512", "base kHz 1900000"
    cluster: int | None = None  # the first CPU of those that share a cache below the last level with several cores


@dataclass(frozen=True, slots=True)
class CacheDomain:
    """One last-level cache and the online CPUs that share it."""

    id: int  # as in resctrl's schemata: gaps are usual, and it is not the socket
    level: int
    bytes: int | None
    ways: int | None  # associativity; resctrl's cbm_mask may be narrower
    cpus: tuple[int, ...]
    clusters: int = 1  # memory nodes that divide it (sub-NUMA clustering): each fills its own part


@dataclass(frozen=True, slots=True)
class CachePart:
    """What of a last-level cache one memory node fills: all of it, or its part where the cache is divided."""

    llc: int
    node: int | None  # None where the cache is not divided
    bytes: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One memory node; it may have no CPUs."""

    id: int
    bytes: int | None
    cpus: tuple[int, ...]
    distances: tuple[tuple[int, int], ...] = ()  # of each node as the firmware reports it, itself included


@dataclass(frozen=True, slots=True)
class Topology:
    """The machine's processors and who shares what with whom."""

    cpus: tuple[Cpu, ...]
    llcs: tuple[CacheDomain, ...]
    nodes: tuple[NumaNode, ...]
    allowed: tuple[int, ...]  # online CPUs that this process may run on
    memory: tuple[int, ...] = ()  # nodes with memory that this process may use
    isolated: tuple[int, ...] = ()  # CPUs that the kernel does not balance (isolcpus)
    tickless: tuple[int, ...] = ()  # CPUs that may run without a timer tick (nohz_full)

    def cores(self) -> tuple[tuple[int, ...], ...]:
        """Group the allowed CPUs by physical core; a CPU whose core is not known counts as one."""
        groups: dict[tuple[bool, int], list[int]] = {}
        for cpu in self.cpus:
            if cpu.id in self.allowed:
                key = (True, cpu.id) if cpu.core is None else (False, cpu.core)
                groups.setdefault(key, []).append(cpu.id)
        return tuple(sorted(tuple(group) for group in groups.values()))

    def cache_parts(self) -> tuple[CachePart, ...]:
        """The last-level caches, each once for every memory node that fills a part of it."""
        parts: list[CachePart] = []
        for llc in self.llcs:
            clusters = _clusters(llc.cpus, self.nodes)
            size = llc.bytes and llc.bytes // max(len(clusters), 1)
            parts += [CachePart(llc.id, node.id, size, node.cpus) for node in clusters]
            parts += [] if clusters else [CachePart(llc.id, None, size, llc.cpus)]
        return tuple(parts)


def _clusters(cpus: Sequence[int], nodes: Sequence[NumaNode]) -> list[NumaNode]:
    """The memory nodes that divide a cache of these CPUs among themselves; empty where no two do."""
    dividing = clusters_of(cpus, {node.id: node.cpus for node in nodes})
    return [node for node in nodes if node.id in dividing]


@dataclass(frozen=True, slots=True)
class _Cache:
    """What the kernel shows of one unified cache of one CPU."""

    id: int | None
    level: int
    bytes: int | None
    ways: int | None
    shared: tuple[int, ...]


def parse_cpu_list(text: str) -> list[int]:
    """Turn the kernel's list notation, "0-3,8", into sorted CPU numbers."""
    cpus: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last > HIGHEST_CPU:
            raise CastmatesError(f"{part!r} in the CPU list {text!r} is no CPU or range; write it as in '0-3,8'.")
        cpus.update(range(first, last + 1))
    return sorted(cpus)


def read_topology(root: Path = Path("/")) -> Topology:
    """Read the topology of this machine, or of one whose sysfs was recorded below `root`."""
    base = root / CPU_DIR
    ids = _numbered(base, "cpu") or list(_affinity(root) or ())
    online = _online(base, ids)
    nodes = _nodes(root, online)
    caches = {cpu: _unified_caches(base / f"cpu{cpu}/cache") for cpu in ids if cpu in online}
    llcs = tuple(_divided(llc, nodes) for llc in _last_level(caches))
    kinds = _kinds(root, ids)
    node_of = {cpu: node.id for node in nodes for cpu in node.cpus}
    llc_of = {cpu: llc.id for llc in llcs for cpu in llc.cpus}
    cpus = []
    for cpu in ids:
        here = base / f"cpu{cpu}/topology"
        siblings = _siblings(here, cpu, online)
        package = read_int(here / "physical_package_id")
        cpus.append(
            Cpu(
                id=cpu,
                core=min(siblings) if siblings else None,
                package=package if package is not None and package >= 0 else None,
                node=node_of.get(cpu),
                llc=llc_of.get(cpu),
                siblings=siblings,
                online=cpu in online,
                kind=kinds.get(cpu),
                cluster=_cluster(caches.get(cpu, {}), siblings),
            )
        )
    permitted = _affinity(root)
    return Topology(
        cpus=tuple(cpus),
        llcs=llcs,
        nodes=nodes,
        allowed=tuple(cpu for cpu in ids if cpu in online and (permitted is None or cpu in permitted)),
        memory=_memory(root, nodes),
        isolated=_cpu_list(base / "isolated") or (),
        tickless=_cpu_list(base / "nohz_full") or (),
    )


def one_last_level_cache(root: Path = Path("/")) -> CacheDomain | None:
    """Read the last-level cache of the first online CPU alone, which takes a few files; its number may be missing."""
    base = root / CPU_DIR
    online = _online(base, _numbered(base, "cpu"))
    first = min(online, default=None)
    levels = {} if first is None else _unified_caches(base / f"cpu{first}/cache")
    if not levels:
        return None
    last = levels[max(levels)]
    whole = CacheDomain(last.id or 0, last.level, last.bytes, last.ways, last.shared)
    return _divided(whole, _nodes(root, online))


def caches_of_level(level: int, root: Path = Path("/")) -> tuple[CacheDomain, ...]:
    """Read the unified caches of one level, with the online CPUs that share each."""
    base = root / CPU_DIR
    caches = {cpu: _unified_caches(base / f"cpu{cpu}/cache") for cpu in _online(base, _numbered(base, "cpu"))}
    return _last_level({cpu: {level: found[level]} for cpu, found in sorted(caches.items()) if level in found})


def _divided(llc: CacheDomain, nodes: Sequence[NumaNode]) -> CacheDomain:
    return replace(llc, clusters=len(_clusters(llc.cpus, nodes)) or 1)


def _affinity(root: Path) -> tuple[int, ...] | None:
    """List the CPUs that this process may use; of a recorded tree those in its /proc/self/status, if any."""
    if root == Path("/"):
        return tuple(sorted(os.sched_getaffinity(0)))
    text = status_of(root=root).get("Cpus_allowed_list")
    return tuple(parse_cpu_list(text)) if text else None


def _numbered(folder: Path, prefix: str) -> list[int]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted(int(name[len(prefix) :]) for name in names if re.fullmatch(prefix + r"\d+", name, re.ASCII))


def _cpu_list(path: Path) -> tuple[int, ...] | None:
    text = read_text(path)
    try:
        return tuple(parse_cpu_list(text)) if text is not None else None
    except CastmatesError:
        return None


def _sharing(folder: Path, *names: tuple[str, str]) -> tuple[int, ...]:
    """Read who shares something: from the first list that has CPUs, else, as old kernels have no lists, from a mask."""
    listed = (_cpu_list(folder / name) for name, _ in names)
    masked = (_cpu_mask(folder / name) for _, name in names)
    return next(filter(None, chain(listed, masked)), ())


def _cpu_mask(path: Path) -> tuple[int, ...]:
    """Read a mask in the kernel's notation: hexadecimal words of 32 CPUs each, the highest first."""
    words = (read_text(path) or "").split(",")
    if not all(re.fullmatch(r"[0-9a-f]{1,8}", word, re.ASCII) for word in words):
        return ()
    bits = int("".join(word.zfill(8) for word in words), 16)
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def _online(base: Path, ids: list[int]) -> frozenset[int]:
    listed = _cpu_list(base / "online")
    if listed is not None:
        return frozenset(listed) & frozenset(ids)
    return frozenset(cpu for cpu in ids if read_text(base / f"cpu{cpu}/online") != "0")


def _siblings(topology: Path, cpu: int, online: frozenset[int]) -> tuple[int, ...]:
    if cpu not in online:
        return ()
    # The kernel renamed thread_siblings_list to core_cpus_list and keeps both for now.
    named = _sharing(topology, ("core_cpus_list", "core_cpus"), ("thread_siblings_list", "thread_siblings"))
    return tuple(sibling for sibling in named if sibling in online)


def _nodes(root: Path, online: Set[int]) -> tuple[NumaNode, ...]:
    """Read the nodes of the machine's memory; some drivers add the memory of GPUs, which is left out."""
    nodes: list[NumaNode] = []
    folder = root / "sys/devices/system/node"
    ids = _numbered(folder, "node")
    of_gpus = memory_nodes(root)
    for node in ids:
        here = folder / f"node{node}"
        cpus = [cpu for cpu in _sharing(here, ("cpulist", "cpumap")) if cpu in online]
        # Firmware that gives a CPU to two nodes is wrong about the second, as lstopo sees it too.
        if str(node) in of_gpus or any(cpu in other.cpus for other in nodes for cpu in cpus):
            continue
        total = re.search(r"MemTotal:\s+(\d+) kB", read_text(here / "meminfo") or "")
        size = int(total[1]) * 1024 if total else None
        far = [int(word) for word in (read_text(here / "distance") or "").split() if word.isdecimal()]
        # The kernel lists one distance for each online node, in order, and names none of them.
        distances = tuple(zip(ids, far, strict=True)) if len(far) == len(ids) else ()
        nodes.append(NumaNode(node, size, tuple(cpus), distances))
    return tuple(nodes)


def _memory(root: Path, nodes: tuple[NumaNode, ...]) -> tuple[int, ...]:
    text = status_of(root=root).get("Mems_allowed_list")
    permitted = parse_cpu_list(text) if text else None
    return tuple(node.id for node in nodes if node.bytes != 0 and (permitted is None or node.id in permitted))


def _unified_caches(folder: Path) -> dict[int, _Cache]:
    """Return the unified caches of one CPU by level; the number in "index3" is not the level."""
    caches: dict[int, _Cache] = {}
    for index in _numbered(folder, "index"):
        here = folder / f"index{index}"
        level = read_int(here / "level")
        if level is None or read_text(here / "type") != "Unified":
            continue
        ways = read_int(here / "ways_of_associativity")
        caches[level] = _Cache(
            id=read_int(here / "id"),
            level=level,
            bytes=_size(read_text(here / "size")),
            ways=ways or None,  # the kernel writes 0 for "not known"
            shared=_sharing(here, ("shared_cpu_list", "shared_cpu_map")),
        )
    return caches


def _size(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG]?)", text or "", re.ASCII)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def _last_level(caches: Mapping[int, Mapping[int, _Cache]]) -> tuple[CacheDomain, ...]:
    """Group CPUs by their cache of the machine's highest unified level."""
    level = max((level for levels in caches.values() for level in levels), default=None)
    if level is None:
        return ()
    last = {cpu: levels[level] for cpu, levels in caches.items() if level in levels}
    # One missing id (old kernels, some Arm firmware) makes all useless as names: count the domains.
    by_id = all(cache.id is not None for cache in last.values())
    shares = sorted({cache.shared for cache in last.values() if cache.shared})
    members: dict[int, list[int]] = {}
    for cpu, cache in last.items():
        if by_id and cache.id is not None:
            members.setdefault(cache.id, []).append(cpu)
        elif not by_id and cache.shared:
            members.setdefault(shares.index(cache.shared), []).append(cpu)
    return tuple(
        CacheDomain(number, level, last[cpus[0]].bytes, last[cpus[0]].ways, tuple(cpus))
        for number, cpus in sorted(members.items())
    )


def _cluster(caches: Mapping[int, _Cache], siblings: tuple[int, ...]) -> int | None:
    """The first CPU of the cores that share the largest cache below the last level; None where no other core does."""
    below = sorted(caches)[:-1]
    shared = caches[below[-1]].shared if below else None
    return min(shared) if shared and set(shared) - set(siblings) else None


def _kinds(root: Path, ids: list[int]) -> dict[int, str]:
    """Name the core types of a hybrid machine; empty where all cores are alike."""
    kinds: dict[int, str] = {}
    for device, kind in HYBRID_DEVICES.items():
        for cpu in _cpu_list(root / "sys/devices" / device / "cpus") or ():
            kinds[cpu] = kind
    if kinds:
        return kinds
    # Firmware of Arm states capacities; processors of Intel differ in their base frequency.
    for name, file in (("capacity", "cpu_capacity"), ("base kHz", "cpufreq/base_frequency")):
        values = {cpu: read_int(root / CPU_DIR / f"cpu{cpu}" / file) for cpu in ids}
        known = {cpu: f"{name} {value}" for cpu, value in values.items() if value is not None}
        if len(set(known.values())) > 1:
            return known
    return {}


def layout_of(topology: Topology) -> Layout:
    """The machine as placement sees it."""
    cpus = [
        Seat(
            id=cpu.id,
            core=cpu.id if cpu.core is None else cpu.core,  # unknown: a core by itself
            llc=cpu.llc,
            node=cpu.node,
            package=cpu.package,
            kind=cpu.kind,
            online=cpu.online,
            allowed=cpu.id in topology.allowed,
            isolated=cpu.id in topology.isolated,
            tickless=cpu.id in topology.tickless,
            cluster=cpu.cluster,
        )
        for cpu in topology.cpus
    ]
    distances = {(node.id, other): far for node in topology.nodes for other, far in node.distances}
    return Layout(
        tuple(cpus),
        topology.memory,
        distances,
        llc_bytes={llc.id: llc.bytes for llc in topology.llcs if llc.bytes},
        llc_ways={llc.id: llc.ways for llc in topology.llcs if llc.ways},
    )
