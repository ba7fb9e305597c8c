"""Makes a fake of a machine that was captured: its shape, its groups with their masks, and what its monitors read.

    with capture.opened(Path("machine.json.gz")) as root:
        fake = replay(root)

Every resource comes back: masks of both cache levels, throttles of both kinds of memory, counters that belong to
groups, the class of I/O, sub-NUMA nodes. What a capture does not show is assumed: counters go in steps of the greatest
number that divides all readings, and no monitoring id is in limbo. Of what the fake lacks (its docstring lists it)
nothing is replayed.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from castmates.errors import CastmatesError
from castmates.linux import host
from castmates.linux.kernel_files import Mount, below
from castmates.machine.resctrl_state import CLUSTER, options_of
from castmates.machine.topology import read_topology
from castmates.rdt.fake.controls import EXCLUSIVE
from castmates.rdt.fake.group import Group
from castmates.rdt.fake.kernel import V6_1, V6_12, V7_2, Kernel
from castmates.rdt.fake.monitors import Failure
from castmates.rdt.fake.recorded_shape import names_of, shape_of, shown_nodes
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.rdt.fake.shape import EVENTS, Shape
from castmates.rdt.resctrl.capabilities import find_mount, monitored_domains
from castmates.rdt.resctrl.foreign import control_groups, monitoring_groups
from castmates.rdt.resctrl.tree import KernelTree, Tree

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
