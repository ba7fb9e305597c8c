"""Makes a fake of a machine that was captured: its shape, its groups with their masks, and what its monitors read.

    with capture.opened(Path("machine.json.gz")) as root:
        fake = replay(root)

Every resource comes back: masks of both cache levels, throttles of both kinds of memory, counters that belong to
groups, the class of I/O, sub-NUMA nodes. What a capture does not show is assumed: counters go in steps of the greatest
number that divides all readings, and no monitoring id is in limbo. Of what the fake lacks (its docstring lists it)
nothing is replayed.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.kernel_files import Mount, below
from castmates.machine.resctrl_state import CLUSTER, amd_most, options_of, settings
from castmates.machine.topology import CacheDomain, Topology, caches_of_level, read_topology
from castmates.rdt.fake.controls import EXCLUSIVE
from castmates.rdt.fake.group import Group
from castmates.rdt.fake.kernel import V6_1, V6_12, V7_2, Kernel
from castmates.rdt.fake.monitors import Failure
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.rdt.fake.shape import EVENTS, Shape, Throttle, Ways
from castmates.rdt.resctrl.capabilities import find_mount, monitored_domains
from castmates.rdt.resctrl.foreign import control_groups, monitoring_groups
from castmates.rdt.resctrl.tree import KernelTree, Tree
from castmates.rdt.resctrl.wanted_schemata import Schemata, parse
from castmates.study.placement.layout import clusters_of

Readings = dict[tuple[str, str, int], int | str]  # path of a group, event, domain -> what its file showed
KERNELS = (((7, 0), V7_2), ((6, 7), V6_12), ((0, 0), V6_1))  # from this version on
FAILURES: tuple[Failure, ...] = get_args(Failure)


@dataclass(frozen=True)
class Recorded:
    """A source that goes on showing what was read."""

    readings: Readings
    parts: int = 1  # of a cache, of which a kernel that does not know them has shown the first one alone

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
        return max(0, whole - sum(parts)) * self.parts


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
    shape = shape_of(root, tree, [value for value in _all_counts(tree, readings) if isinstance(value, int)])
    kernel = _kernel(root, tree, shape)
    parts = 1 if kernel.knows_clusters else max(map(len, shape.nodes.values()), default=1)
    fake = FakeResctrl(shape, kernel, Recorded(readings, parts), ",".join(options_of(mount)))
    _set_machine(fake, tree)
    for group in filter(None, groups):
        fake.make(group)
        fake.write(f"{group}/cpus_list", tree.read(f"{group}/cpus_list"))
    for group in ["", *controls]:
        place = f"{group}/schemata".lstrip("/")
        for line in tree.read(place).splitlines():
            fake.write(place, _to_show(line, shape) + "\n")
    for group in controls:  # after all masks: those of an exclusive group must not overlap with any other
        if tree.read(f"{group}/mode").strip() == EXCLUSIVE:
            fake.write(f"{group}/mode", f"{EXCLUSIVE}\n")
    _assign_counters(fake, tree, groups)
    for (group, event, domain), value in readings.items():
        for failure in FAILURES:
            if value == failure != "Unassigned":
                fake.fail(group, event, failure, domain)
    return fake


def _to_show(line: str, shape: Shape) -> str:
    """Return what has to be written for a line to be shown again: on Arm a throttle is a fraction of a whole step."""
    name, _, values = line.strip().partition(":")
    if not shape.throttle or not shape.throttle.fraction or name != "MB":
        return line
    step = shape.throttle.step
    pairs = (pair.split("=") for pair in values.split(";"))
    return f"{name}:" + ";".join(f"{at}={min(round(int(value) / step) * step, 100)}" for at, value in pairs)


def _kernel(root: Path, tree: Tree, shape: Shape) -> Kernel:
    """Return the ways of the captured kernel, by its version and by what its files show of them."""
    like = kernel_of(root)
    info = [name for resource in names_of(tree, "info") for name in names_of(tree, f"info/{resource}")]
    return replace(
        like,
        pads_values=_pads(tree.read("schemata"), like.pads_values),
        tells_sparse="sparse_masks" in info,
        assigns_counters="mbm_assign_mode" in info,
        allocates_io="io_alloc" in info,
        knows_clusters=bool(shown_nodes(tree)) if shape.nodes else like.knows_clusters,
    )


def _set_machine(fake: FakeResctrl, tree: Tree) -> None:
    """Set what belongs to no group."""
    if fake.shape.monitors:
        fake.write("info/L3_MON/max_threshold_occupancy", tree.read("info/L3_MON/max_threshold_occupancy"))
    if fake.shape.mbm_counters and fake.kernel.assigns_counters:
        chosen = re.search(r"\[(\w+)\]", tree.read("info/L3_MON/mbm_assign_mode"))
        fake.write("info/L3_MON/mbm_assign_mode", f"{chosen[1] if chosen else 'default'}\n")
    for resource in names_of(tree, "info"):
        place = f"info/{resource}/io_alloc"
        if "io_alloc" in names_of(tree, f"info/{resource}") and tree.read(place).strip() == "enabled":
            fake.write(place, "1\n")
            fake.write(f"{place}_cbm", tree.read(f"{place}_cbm"))


def _assign_counters(fake: FakeResctrl, tree: Tree, groups: Sequence[str]) -> None:
    """Give the counters to whom they belonged: the fake's kernel has given them out in the order of its groups."""
    places = [f"{group}/mbm_L3_assignments".lstrip("/") for group in groups]
    shown = {}
    for place in places:
        try:
            shown[place] = tree.read(place)
        except OSError:  # no such counters, or not in this mode
            return
    for free in (True, False):  # what belongs to nobody first, so that there are enough
        for place, text in shown.items():
            fake.write(place, re.sub(r"=e", "=_", text) if free else text)


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
        for domain, name in monitored_domains(names_of(tree, folder)).items():
            for event in set(names_of(tree, f"{folder}/{name}")) & set(EVENTS):
                text = tree.read(f"{folder}/{name}/{event}").strip()
                readings[group, event, domain] = int(text) if text.isdecimal() else text
    return readings


def _all_counts(tree: Tree, readings: Readings) -> Iterable[int | str]:
    """Yield the readings, and those of a cache's parts, which are finer."""
    yield from readings.values()
    for name in monitored_domains(names_of(tree, "mon_data")).values():
        for part in names_of(tree, f"mon_data/{name}"):
            for event in names_of(tree, f"mon_data/{name}/{part}") if part.startswith(CLUSTER) else ():
                text = tree.read(f"mon_data/{name}/{part}/{event}").strip()
                yield int(text) if text.isdecimal() else text


def _pads(schemata: str, otherwise: bool) -> bool:
    """Check whether values stand in columns, as far as they show it."""
    values: Collection[str] = re.findall(r"=( *\w+)", schemata)
    if any(value.startswith((" ", "0")) and len(value) > 1 for value in values):
        return True
    return otherwise if len(set(map(len, values))) <= 1 else False


# Reads the shape of a machine out of the files of its resctrl and its sysfs.

SLOW = "SMBA"
OF_LAST_LEVEL = ("L3", "L3DATA", "L3CODE", "MB", SLOW)  # lines whose domains are last-level caches


def shape_of(root: Path, tree: Tree, readings: Iterable[int]) -> Shape:
    """Return what resctrl has there; `readings` are all counts, for the steps in which counters go."""
    masks, topology = parse(tree.read("schemata")), read_topology(root)
    domains = _domains(topology, tree, masks)
    monitors = info_of(tree, "L3_MON")
    last = _ways(root, tree, masks, "L3", topology.llcs)
    second = _ways(root, tree, masks, "L2", caches_of_level(2, root))
    processor = host.processor(root)
    on_arm, family = "implementer" in processor, processor.get("family", 0)
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
        throttle=_throttle(info_of(tree, "MB"), masks["MB"], on_arm, family) if "MB" in masks else None,
        events=tuple(event for event in EVENTS if event in monitors.get("mon_features", "").split()),
        rmids=_number(monitors, "num_rmids"),
        scale=_scale(readings, _number(monitors, "max_threshold_occupancy")),
        nodes=nodes_of(topology, tree),
        mbm_counters=max((int(count) for count in re.findall(r"=(\d+)", monitors.get("num_mbm_cntrs", ""))), default=0),
        io_alloc="io_alloc" in info_of(tree, _resource(masks, "L3")),
        second=second,
        slow=_throttle(info_of(tree, SLOW), masks[SLOW], on_arm, family) if SLOW in masks else None,
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


def _throttle(info: Mapping[str, str], values: Mapping[int, int], on_arm: bool, family: int) -> Throttle:
    linear, step = info.get("delay_linear", "1") == "1", int(info.get("bandwidth_gran", "10"))
    return Throttle(
        closids=_number(info, "num_closids"),
        least=int(info.get("min_bandwidth", "10")),
        step=step,
        most=100 if linear else amd_most(family, max(values.values())),
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
