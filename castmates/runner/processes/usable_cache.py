"""What of a last-level cache a member can use, for kernels whose working set is a share of it.

They read sysfs, which shows the whole cache where sub-NUMA clusters divide it, and its associativity, which need not be
the number of bits in a mask.
"""

from collections.abc import Collection, Sequence

from castmates.machine.topology import Topology
from castmates.study.cache import Cache

BYTES, WAYS = "CASTMATES_LLC_BYTES", "CASTMATES_LLC_WAYS"  # as castmates/workloads/native/sizes.h has them


def usable_cache(
    cpus: Sequence[int], nodes: Collection[int], topology: Topology, cache: Cache | None
) -> dict[str, str]:
    """Return the variables that correct sysfs for a program on these CPUs; none where sysfs is right.

    Its memory fills the parts of the nodes that it is bound to; without them, or far away, those around its CPUs.
    """
    llc = next((llc for llc in topology.llcs if cpus and cpus[0] in llc.cpus), None)
    if llc is None:
        return {}
    variables = {}
    parts = [part for part in topology.cache_parts() if part.llc == llc.id]
    bound = [part for part in parts if part.node in nodes]
    size = sum(part.bytes or 0 for part in bound or [part for part in parts if set(part.cpus) & set(cpus)])
    if size and size != llc.bytes:
        variables[BYTES] = str(size)
    if cache is not None and cache.ways and cache.ways != llc.ways:
        variables[WAYS] = str(cache.ways)
    return variables
