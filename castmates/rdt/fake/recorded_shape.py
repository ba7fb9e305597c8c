"""Reads the shape of a machine out of the files of its resctrl and its sysfs."""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from castmates.linux import host
from castmates.machine.resctrl_state import AMD_MOST, CLUSTER, settings
from castmates.machine.topology import CacheDomain, Topology, caches_of_level, read_topology
from castmates.rdt.fake.shape import EVENTS, Shape, Throttle, Ways
from castmates.rdt.resctrl.capabilities import monitored_domains
from castmates.rdt.resctrl.tree import Tree
from castmates.rdt.resctrl.wanted_schemata import Schemata, parse
from castmates.study.placement.layout import clusters_of

SLOW = "SMBA"
OF_LAST_LEVEL = ("L3", "L3DATA", "L3CODE", "MB", SLOW)  # lines whose domains are last-level caches


def shape_of(root: Path, tree: Tree, readings: Iterable[int]) -> Shape:
    """Return what resctrl has there; `readings` are all counts, for the steps in which counters go."""
    masks, topology = parse(tree.read("schemata")), read_topology(root)
    domains = _domains(topology, tree, masks)
    monitors = info_of(tree, "L3_MON")
    last = _ways(root, tree, masks, "L3", topology.llcs)
    second = _ways(root, tree, masks, "L2", caches_of_level(2, root))
    on_arm = "implementer" in host.processor(root)
    closids = _number(info_of(tree, _resource(masks, "L3")), "num_closids") or 1
    return Shape(
        domains=domains,
        cache_bytes=last.cache_bytes if last else next((llc.bytes for llc in topology.llcs if llc.bytes), 0),
        ways=last.ways if last else 0,
        shareable=last.shareable if last else 0,
        least_bits=last.least_bits if last else 1,
        sparse=bool(last and last.sparse),
        closids=last.closids if last else 0,
        cdp=bool(last and last.cdp),
        throttle=_throttle(info_of(tree, "MB"), masks["MB"], on_arm) if "MB" in masks else None,
        events=tuple(event for event in EVENTS if event in monitors.get("mon_features", "").split()),
        rmids=_number(monitors, "num_rmids"),
        scale=_scale(readings, _number(monitors, "max_threshold_occupancy")),
        nodes=nodes_of(topology, tree),
        mbm_counters=max((int(count) for count in re.findall(r"=(\d+)", monitors.get("num_mbm_cntrs", ""))), default=0),
        io_alloc="io_alloc" in info_of(tree, _resource(masks, "L3")),
        second=second,
        slow=_throttle(info_of(tree, SLOW), masks[SLOW], on_arm) if SLOW in masks else None,
        rmids_of_class=_number(monitors, "num_rmids") // closids if on_arm else 0,
        configurable="mbm_total_bytes_config" in monitors.get("mon_features", "").split(),
    )


def info_of(tree: Tree, resource: str) -> dict[str, str]:
    """Return the files of a resource's info; those that a mode hides are left out."""
    found = {}
    for name in names_of(tree, f"info/{resource}"):
        try:
            found[name] = tree.read(f"info/{resource}/{name}").strip()
        except OSError:
            continue
    return found


def names_of(tree: Tree, folder: str) -> list[str]:
    """Name what lies in a folder; nothing where this machine has none."""
    try:
        return tree.names(folder)
    except OSError:
        return []


def shown_nodes(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the sub-NUMA nodes that have monitors inside those of a cache."""
    found = {}
    for domain, name in monitored_domains(names_of(tree, "mon_data")).items():
        parts = (re.fullmatch(CLUSTER + r"L3_(\d+)", part) for part in names_of(tree, f"mon_data/{name}"))
        if nodes := tuple(int(part[1]) for part in parts if part):
            found[domain] = nodes
    return found


def nodes_of(topology: Topology, tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the sub-NUMA nodes of each monitored cache; a kernel that does not know them leaves them to sysfs."""
    if not (monitored := monitored_domains(names_of(tree, "mon_data"))):
        return {}
    divided = {
        llc.id: tuple(clusters_of(llc.cpus, {node.id: node.cpus for node in topology.nodes}))
        for llc in topology.llcs
        if llc.clusters > 1
    }
    return shown_nodes(tree) or {domain: divided[domain] for domain in monitored if domain in divided}


def _domains(topology: Topology, tree: Tree, masks: Schemata) -> Mapping[int, tuple[int, ...]]:
    """Return the caches that resctrl names, with the CPUs that share them; all where it names none."""
    named = {domain for line in OF_LAST_LEVEL for domain in masks.get(line, ())}
    named |= set(monitored_domains(names_of(tree, "mon_data")))
    cpus = {llc.id: llc.cpus for llc in topology.llcs}
    if lacking := named - cpus.keys():
        raise ValueError(f"it names a cache {min(lacking)}, and sysfs has no last-level cache of this id")
    return {domain: cpus[domain] for domain in sorted(named or cpus)}


def _resource(masks: Schemata, level: str) -> str:
    """Return how the line of a level's masks is called: with CDP data's stands for both."""
    return f"{level}DATA" if f"{level}DATA" in masks else level


def _ways(root: Path, tree: Tree, masks: Schemata, level: str, caches: Iterable[CacheDomain]) -> Ways | None:
    resource = _resource(masks, level)
    info, cpus = info_of(tree, resource), {cache.id: cache.cpus for cache in caches}
    if "cbm_mask" not in info or resource not in masks:
        return None
    if lacking := masks[resource].keys() - cpus.keys():
        kind = "last-level cache" if level == "L3" else "second-level cache"
        raise ValueError(f"it names a cache {min(lacking)}, and sysfs has no {kind} of this id")
    full, apart = int(info["cbm_mask"], 16), resource != level
    return Ways(
        level,
        {domain: cpus[domain] for domain in sorted(masks[resource])},
        _cache_bytes(tree, masks[resource], resource, full) or next((c.bytes for c in caches if c.bytes), 0),
        full.bit_count(),
        int(info.get("shareable_bits", "0"), 16),
        int(info.get("min_cbm_bits", "1")),
        info.get("sparse_masks") == "1",
        _number(info, "num_closids") * (1 + apart),
        apart or f"cdp_{level.lower()}" in (host.cpu_flags(root) or ()),
    )


def _cache_bytes(tree: Tree, masks: Mapping[int, int], resource: str, full: int) -> int:
    """Return what resctrl counts as one cache."""
    sizes = settings(tree.read("size")) if "size" in names_of(tree, "") else {}
    for domain, mask in masks.items():
        if mask and sizes.get((resource, str(domain)), "").isdecimal():
            return int(sizes[resource, str(domain)]) // mask.bit_count() * full.bit_count()
    return 0


def _throttle(info: Mapping[str, str], values: Mapping[int, int], on_arm: bool) -> Throttle:
    linear, step = info.get("delay_linear", "1") == "1", int(info.get("bandwidth_gran", "10"))
    return Throttle(
        closids=_number(info, "num_closids"),
        least=int(info.get("min_bandwidth", "10")),
        step=step,
        most=100 if linear else 1 << (max(AMD_MOST, *values.values()) - 1).bit_length(),
        linear=linear,
        mode=info.get("thread_throttle_mode", ""),
        digits=3 if linear else 4,
        fraction=_bits_of(step) if on_arm else 0,
    )


def _bits_of(step: int) -> int:
    """Return the bits of a binary fraction of 100 per cent whose steps are so large, rounded up."""
    return next((bits for bits in range(1, 17) if -(-100 // (1 << bits)) <= step), 16)


def _scale(readings: Iterable[int], threshold: int) -> int:
    """Return in which steps the counters go, as far as the numbers show it."""
    return math.gcd(*readings, threshold) or 1


def _number(info: Mapping[str, str], name: str) -> int:
    return int(info.get(name) or "0")
