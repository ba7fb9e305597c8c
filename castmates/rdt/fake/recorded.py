"""Makes a fake of a machine that was captured: its shape, its groups with their masks, and what its monitors read.

    with capture.opened(Path("machine.json.gz")) as root:
        fake = replay(root)

What a capture does not show is assumed: counters go in steps of the greatest number that divides all readings, and no
monitoring id is in limbo. Of what the fake lacks (its docstring lists it) nothing is replayed.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.kernel_files import Mount, below
from castmates.machine.resctrl_state import options_of
from castmates.machine.topology import Topology, read_topology
from castmates.rdt.fake.controls import EXCLUSIVE
from castmates.rdt.fake.group import Group
from castmates.rdt.fake.kernel import V6_1, V6_12, V7_2, Kernel
from castmates.rdt.fake.monitors import Failure
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.rdt.fake.shape import EVENTS, Shape, Throttle
from castmates.rdt.resctrl.capabilities import AMD_MOST, find_mount, monitored_domains
from castmates.rdt.resctrl.foreign import control_groups, monitoring_groups
from castmates.rdt.resctrl.schemata import CODE, DATA, L3, MB, Schemata, one_line, parse
from castmates.rdt.resctrl.tree import KernelTree, Tree

Readings = dict[tuple[str, str, int], int | str]  # path of a group, event, domain -> what its file showed
KERNELS = (((7, 0), V7_2), ((6, 7), V6_12), ((0, 0), V6_1))  # from this version on
FAILURES: tuple[Failure, ...] = get_args(Failure)


@dataclass(frozen=True)
class Recorded:
    """A source that goes on showing what was read."""

    readings: Readings

    def occupancy(self, group: Group, domain: int) -> float:
        """Return what lay in a cache for a group alone."""
        return self._own(group, "llc_occupancy", domain)

    def traffic(self, group: Group, domain: int, local: bool) -> float:
        """Return what a group alone had moved."""
        return self._own(group, "mbm_local_bytes" if local else "mbm_total_bytes", domain)

    def _own(self, group: Group, event: str, domain: int) -> int:
        """Take away what a control group's file shows of its monitoring groups."""
        shown = [self.readings.get((one.path, event, domain), 0) for one in (group, *group.monitoring)]
        whole, *parts = (value if isinstance(value, int) else 0 for value in shown)
        return max(0, whole - sum(parts))


def replay(root: Path) -> FakeResctrl:
    """Return the machine whose capture was opened here, as it was: mounted or not, with the groups that it had."""
    mount = find_mount(root)
    try:
        if mount is None:
            return _unmounted(root)
        return _mounted(root, mount, KernelTree(below(root, mount.point)))
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise CastmatesError(f"resctrl cannot be replayed from this capture: {why}.") from None


def kernel_of(root: Path) -> Kernel:
    """Return the ways of the kernel that is most like the captured one."""
    version = tuple(map(int, re.findall(r"\d+", host.release(root) or "")[:2])) or (0, 0)
    return next(kernel for first, kernel in KERNELS if version >= first)


def _mounted(root: Path, mount: Mount, tree: Tree) -> FakeResctrl:
    controls = control_groups(tree)
    groups = [path for control in ["", *controls] for path in (control, *monitoring_groups(tree, control))]
    readings = _readings(tree, groups)
    shape = _shape(root, tree, readings)
    like = kernel_of(root)
    kernel = replace(
        like,
        pads_values=_pads(tree.read("schemata"), like.pads_values),
        tells_sparse=any("sparse_masks" in _names(tree, f"info/{resource}") for resource in (L3, DATA)),
    )
    fake = FakeResctrl(shape, kernel, Recorded(readings), ",".join(options_of(mount)))
    if shape.monitors:
        fake.write("info/L3_MON/max_threshold_occupancy", tree.read("info/L3_MON/max_threshold_occupancy"))
    for group in filter(None, groups):
        fake.make(group)
        fake.write(f"{group}/cpus_list", tree.read(f"{group}/cpus_list"))
    for group in ["", *controls]:
        masks = parse(tree.read(f"{group}/schemata".lstrip("/")))
        known = {resource: masks[resource] for resource in (L3, CODE, DATA, MB) if resource in masks}
        for resource, domains in known.items():
            fake.write(f"{group}/schemata".lstrip("/"), one_line({resource: domains}) + "\n")
    for group in controls:  # after all masks: those of an exclusive group must not overlap with any other
        if tree.read(f"{group}/mode").strip() == EXCLUSIVE:
            fake.write(f"{group}/mode", f"{EXCLUSIVE}\n")
    for (group, event, domain), value in readings.items():
        for failure in FAILURES:
            if value == failure:
                fake.fail(group, event, failure, domain)
    return fake


def _unmounted(root: Path) -> FakeResctrl:
    """Return a machine without resctrl: of one that has it, nothing is known unless it was mounted."""
    if "resctrl" in (host.file_systems(root) or ()):
        raise ValueError("the machine has it, but it was not mounted when it was captured; let root make the capture")
    domains = {llc.id: llc.cpus for llc in read_topology(root).llcs}
    nothing = Shape(domains=domains, ways=0, shareable=0, closids=0, cdp=False, throttle=None, events=(), rmids=0)
    return FakeResctrl(nothing, kernel_of(root), options=None)


def _readings(tree: Tree, groups: Iterable[str]) -> Readings:
    readings: Readings = {}
    for group in groups:
        folder = f"{group}/mon_data".lstrip("/")
        for domain, name in monitored_domains(_names(tree, folder)).items():
            for event in set(_names(tree, f"{folder}/{name}")) & set(EVENTS):
                text = tree.read(f"{folder}/{name}/{event}").strip()
                readings[group, event, domain] = int(text) if text.isdecimal() else text
    return readings


def _shape(root: Path, tree: Tree, readings: Readings) -> Shape:
    masks = parse(tree.read("schemata"))
    resource = DATA if DATA in masks else L3
    info = _info(tree, resource)
    monitors = _info(tree, "L3_MON")
    full, closids = int(info.get("cbm_mask", "0"), 16), int(info.get("num_closids", "0"))
    topology = read_topology(root)
    return Shape(
        domains=_domains(topology, tree, masks),
        cache_bytes=_cache_bytes(topology, tree, masks.get(resource, {}), resource, full),
        ways=full.bit_count(),
        shareable=int(info.get("shareable_bits", "0"), 16),
        least_bits=int(info.get("min_cbm_bits", "1")),
        sparse=info.get("sparse_masks") == "1",
        closids=2 * closids if resource == DATA else closids,
        cdp=resource == DATA or "cdp_l3" in (host.cpu_flags(root) or ()),
        throttle=_throttle(_info(tree, MB), masks) if MB in masks else None,
        events=tuple(event for event in EVENTS if event in monitors.get("mon_features", "").split()),
        rmids=int(monitors.get("num_rmids", "0")),
        scale=_scale(tree, monitors, readings),
        nodes=_nodes(tree),
    )


def _domains(topology: Topology, tree: Tree, masks: Schemata) -> Mapping[int, tuple[int, ...]]:
    """Return the caches that resctrl names, with the CPUs that share them."""
    named = {domain for domains in masks.values() for domain in domains}
    named |= set(monitored_domains(_names(tree, "mon_data")))
    cpus = {llc.id: llc.cpus for llc in topology.llcs}
    if lacking := named - cpus.keys():
        raise ValueError(f"it names a cache {min(lacking)}, and sysfs has no last-level cache of this id")
    return {domain: cpus[domain] for domain in sorted(named)}


def _cache_bytes(topology: Topology, tree: Tree, masks: Mapping[int, int], resource: str, full: int) -> int:
    """Return what resctrl counts as one cache: with sub-NUMA clusters less than sysfs shows."""
    text = tree.read("size") if "size" in _names(tree, "") else ""
    for domain, mask in masks.items():
        line = re.search(rf"^ *{resource}:(?:.*;)?{domain}=(\d+)", text, re.MULTILINE)
        if mask and line:
            return int(line[1]) // mask.bit_count() * full.bit_count()
    return next((llc.bytes for llc in topology.llcs if llc.bytes), 0)


def _throttle(info: Mapping[str, str], masks: Schemata) -> Throttle:
    linear = info.get("delay_linear", "1") == "1"
    return Throttle(
        closids=int(info.get("num_closids", "0")),
        least=int(info.get("min_bandwidth", "10")),
        step=int(info.get("bandwidth_gran", "10")),
        most=100 if linear else 1 << (max(AMD_MOST, *masks[MB].values()) - 1).bit_length(),
        linear=linear,
        mode=info.get("thread_throttle_mode", ""),
        digits=3 if linear else 4,
    )


def _scale(tree: Tree, monitors: Mapping[str, str], readings: Readings) -> int:
    """Return in which steps the counters go, as far as the numbers show it; those of a cache's parts are finer."""
    numbers = [value for value in readings.values() if isinstance(value, int)]
    for name in monitored_domains(_names(tree, "mon_data")).values():
        parts = [part for part in _names(tree, f"mon_data/{name}") if part.startswith("mon_sub_")]
        files = [
            f"mon_data/{name}/{part}/{event}" for part in parts for event in _names(tree, f"mon_data/{name}/{part}")
        ]
        texts = [tree.read(file).strip() for file in files]
        numbers += [int(text) for text in texts if text.isdecimal()]
    return math.gcd(*numbers, int(monitors.get("max_threshold_occupancy", "0"))) or 1


def _nodes(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the sub-NUMA nodes that have monitors inside those of a cache."""
    found = {}
    for domain, name in monitored_domains(_names(tree, "mon_data")).items():
        parts = (re.fullmatch(r"mon_sub_L3_(\d+)", part) for part in _names(tree, f"mon_data/{name}"))
        if nodes := tuple(int(part[1]) for part in parts if part):
            found[domain] = nodes
    return found


def _pads(schemata: str, otherwise: bool) -> bool:
    """Check whether values stand in columns, as far as they show it."""
    values: Collection[str] = re.findall(r"=( *\w+)", schemata)
    if any(value.startswith((" ", "0")) and len(value) > 1 for value in values):
        return True
    return otherwise if len(set(map(len, values))) <= 1 else False


def _info(tree: Tree, resource: str) -> dict[str, str]:
    return {name: tree.read(f"info/{resource}/{name}").strip() for name in _names(tree, f"info/{resource}")}


def _names(tree: Tree, folder: str) -> list[str]:
    try:
        return tree.names(folder)
    except OSError:  # there is no such folder on this machine
        return []
