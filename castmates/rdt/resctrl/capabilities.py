"""What a mounted resctrl can share out and watch; reading changes nothing.

This is used while a Snakefile is parsed, so it imports the standard library and pydantic only.
"""

import os
import re
from contextlib import suppress
from functools import reduce
from operator import and_, or_
from pathlib import Path

from castmates.linux.host import cpuinfo, processor
from castmates.linux.kernel_files import Mount, below, mounts
from castmates.linux.owner import delegated_to
from castmates.linux.processes import resctrl_groups_of
from castmates.machine.journal import journals
from castmates.machine.quirks import equal_steps
from castmates.machine.resctrl_state import CLUSTER, FSTYPE, UNTHROTTLED_MIBPS, amd_most, options_of, settings
from castmates.machine.topology import CacheDomain, one_last_level_cache
from castmates.rdt.resctrl.foreign import control_groups, living, parse_place
from castmates.rdt.resctrl.tree import KernelTree, Tree
from castmates.rdt.resctrl.wanted_schemata import DATA, L3, MASKS, MB, Schemata, parse
from castmates.study.cache import Bandwidth, Cache

EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
_MONITORED = re.compile(r"mon_L3_(\d+)")


def find_mount(root: Path = Path("/")) -> Mount | None:
    """Find where all of resctrl is mounted, wherever that is; None where it is not."""
    matches = [mount for mount in mounts(root) if mount.fstype == FSTYPE and mount.subtree == "/"]
    return matches[-1] if matches else None  # the latest hides those before it


def read_cache(root: Path = Path("/")) -> Cache | None:
    """Read what the mounted resctrl offers; None where none is mounted, or it offers nothing that can be read."""
    mount = find_mount(root)
    if mount is None:
        return None
    try:
        tree, family = KernelTree(below(root, mount.point)), processor(root).get("family", 0)
        found, llc = _found(root, mount, tree), one_last_level_cache(root)
        cache = capabilities(tree, " ".join(options_of(mount)), llc, found, family)
    except OSError:
        return None
    if cache.bandwidth is None or cache.bandwidth.unit != "%":
        return cache
    # Add what is known of this processor and the kernel does not show.
    return cache.model_copy(
        update={"bandwidth": cache.bandwidth.model_copy(update={"becomes": equal_steps(cpuinfo(root))})}
    )


def ways_of_others() -> dict[str, int]:
    """Read which ways the living groups of others have on this machine, by their names."""
    mount = find_mount()
    groups = {} if mount is None else living(KernelTree(Path(mount.point)))
    return {
        name: reduce(or_, (mask for line in MASKS for mask in schemata.get(line, {}).values()), 0)
        for name, schemata in groups.items()
    }


def _found(root: Path, mount: Mount, tree: Tree) -> Schemata | None:
    """Read the class in which programs begin here: that of this process, without what we have changed in it for a time.

    Of a captured machine it is that of the default group.
    """
    if root != Path("/"):
        return None
    with suppress(OSError):
        place = parse_place(resctrl_groups_of(os.getpid())).control
        if place in control_groups(tree):
            return parse(tree.read(f"{place}/schemata"))
    target = str(Path(mount.point) / "schemata")
    changes = [entry.change for journal in journals() for entry in journal.entries() if entry.change.target == target]
    return parse(changes[0].former) if changes else None


def capabilities(
    tree: Tree, options: str = "", llc: CacheDomain | None = None, found: Schemata | None = None, family: int = 0
) -> Cache:
    """Read what a resctrl offers; files that old kernels lack have the values that these kernels mean.

    `llc` is a last-level cache as sysfs shows it, for kernels whose resctrl does not know sub-NUMA clusters. `found` is
    the class in which programs begin, the default group's where it is left out. `family` is the processor's: the
    kernel does not show what "no throttle" is where the default group has one.
    """
    masks = parse(tree.read("schemata"))
    found = masks if found is None else found
    resource = L3 if _has(tree, L3) else DATA
    widest = int(_word(tree, f"info/{resource}/cbm_mask") or "0", 16)
    cdp = resource == DATA and widest > 0
    shareable = int(_word(tree, f"info/{resource}/shareable_bits") or "0", 16)
    clusters = max(_clusters(tree), llc.clusters if llc else 1)
    way = _way_bytes(tree, masks, resource)
    return Cache(
        domains=_domains(tree, masks),
        ways=widest.bit_count(),
        way_bytes=way and (way if _is_divided(way * widest.bit_count(), llc) else way // clusters),
        least_ways=_number(tree, f"info/{resource}/min_cbm_bits", 1),
        sparse=_word(tree, f"info/{resource}/sparse_masks") == "1",
        # All of them means "not known" (Arm): devices are then in the default group, whose masks hold for them too.
        shareable=0 if shareable == widest else shareable,
        groups=_groups(tree),
        cdp=cdp,
        bandwidth=_bandwidth(_unit_of(tree, masks, options, family), found) if _has(tree, MB) else None,
        events=tuple(event for event in _events(tree) if event in EVENTS),
        monitored_groups=max(0, _number(tree, "info/L3_MON/num_rmids", 0) - 1),  # one is the default group's
        rest=_may_write(tree, "schemata"),
        clusters=clusters,
        allowed=_allowed(found, widest),
    )


def _allowed(found: Schemata, widest: int) -> int | None:
    """Return the ways that a class has everywhere; None where these are all."""
    masks = [mask for line in MASKS for mask in found.get(line, {}).values()]
    allowed = reduce(and_, masks, widest)
    return None if allowed == widest else allowed


def io_allocation(tree: Tree) -> str:
    """Return the ways that the highest class gives to I/O, as the kernel writes them; "" where it gives none."""
    for resource in _resources(tree):
        if _gives_to_io(tree, resource):
            return _word(tree, f"info/{resource}/io_alloc_cbm") or "unknown"
    return ""


def io_has_a_class(tree: Tree) -> bool:
    """Check whether I/O has one, without reading its ways: the kernel forgets the last command's report at that."""
    return any(_gives_to_io(tree, resource) for resource in _resources(tree))


def _gives_to_io(tree: Tree, resource: str) -> bool:
    return _word(tree, f"info/{resource}/io_alloc") == "enabled"


def monitored_domains(names: list[str]) -> dict[int, str]:
    """Find a group's last-level caches in the names of its mon_data; under SNC the parts lie inside."""
    matches = ((_MONITORED.fullmatch(name), name) for name in names)
    return {int(match[1]): name for match, name in matches if match}


def _domains(tree: Tree, masks: Schemata) -> tuple[int, ...]:
    for resource in (L3, DATA, MB):
        if resource in masks:
            return tuple(sorted(masks[resource]))
    with suppress(OSError):  # without monitoring there is no such folder
        return tuple(sorted(monitored_domains(tree.names("mon_data"))))
    return ()


def _way_bytes(tree: Tree, masks: Schemata, resource: str) -> int | None:
    """Divide the size of the default group's share by its ways: it need not have all of them.

    Of a cache that sub-NUMA clusters divide this is a way of the whole cache: the kernel leaves the clusters out.
    """
    sizes = settings(_word(tree, "size") or "")
    for domain, mask in masks.get(resource, {}).items():
        size = sizes.get((resource, str(domain)), "")
        if mask and size.isdecimal():
            return int(size) // mask.bit_count()
    return None


def _clusters(tree: Tree) -> int:
    """Count the sub-NUMA clusters of a last-level cache, which the kernel shows in the folders that monitor it."""
    with suppress(OSError):
        for name in monitored_domains(tree.names("mon_data")).values():
            return sum(part.startswith(CLUSTER) for part in tree.names(f"mon_data/{name}")) or 1
    return 1


def _is_divided(whole: int, llc: CacheDomain | None) -> bool:
    """Check whether the kernel's sizes are those of one cluster, as early versions of its patches had it."""
    return llc is not None and llc.bytes is not None and llc.clusters > 1 and 2 * whole <= llc.bytes


def _groups(tree: Tree) -> int:
    """Count the groups that can be had: each takes one class and one monitoring id, and the default group has one.

    With io_alloc one more class, the highest, belongs to I/O.

    A user who may not make groups has those that root made, whether or not they are in use now: a plan must not depend
    on that.
    """
    taken = 1 + io_has_a_class(tree)
    classes = [count - taken for count in _counts(tree, "num_closids")]
    ids = [count - 1 for count in _counts(tree, "num_rmids")]
    most = max(0, min([*classes, *ids])) if classes else 0
    if _may_write(tree, ""):
        return most
    own = [name for name in control_groups(tree) if delegated_to(name) == os.geteuid()]
    return min(most, len([name for name in own if _may_write(tree, f"{name}/schemata")]))


def _counts(tree: Tree, file: str) -> list[int]:
    """Return how many there are of each resource that shows it."""
    counts = (_number(tree, f"info/{resource}/{file}", 0) for resource in _resources(tree))
    return [count for count in counts if count]


def _may_write(tree: Tree, path: str) -> bool:
    """Check whether this process may; a fake asks each time."""
    return not isinstance(tree, KernelTree) or os.access(tree.root / path, os.W_OK)


def _bandwidth(there: Bandwidth, found: Schemata) -> Bandwidth:
    least = min(found.get(MB, {}).values(), default=there.most)
    return there.model_copy(update={"allowed": least}) if least < there.most else there


def _unit_of(tree: Tree, masks: Schemata, options: str, family: int) -> Bandwidth:
    least, step = _number(tree, "info/MB/min_bandwidth", 10), _number(tree, "info/MB/bandwidth_gran", 10)
    now = max(masks.get(MB, {}).values(), default=0)
    if _word(tree, "info/MB/delay_linear") == "0":  # AMD: absolute, and the default group has the most unless throttled
        return Bandwidth(unit="1/8 GB/s", least=max(1, least), step=max(1, step), most=amd_most(family, now))
    if "mba_MBps" in options.split() or now > 100:
        # Old kernels round MiB/s to the step of per cent: whole steps are the same on all of them.
        return Bandwidth(unit="MiB/s", least=max(1, step), step=max(1, step), most=UNTHROTTLED_MIBPS)
    by_core = _word(tree, "info/MB/thread_throttle_mode") == "max"
    return Bandwidth(unit="%", least=max(1, least), step=max(1, step), most=100, by_core=by_core)


def _events(tree: Tree) -> list[str]:
    return (_word(tree, "info/L3_MON/mon_features") or "").split()


def _resources(tree: Tree) -> list[str]:
    return tree.names("info")


def _has(tree: Tree, resource: str) -> bool:
    return resource in _resources(tree)


def _word(tree: Tree, path: str) -> str | None:
    """Read a file's text without surrounding blanks, or None where there is no such file."""
    with suppress(OSError):
        return tree.read(path).strip()
    return None


def _number(tree: Tree, path: str, otherwise: int) -> int:
    word = _word(tree, path) or ""
    return int(word) if word.isdecimal() else otherwise
