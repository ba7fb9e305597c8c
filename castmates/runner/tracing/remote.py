"""How much of a member's memory lies on other nodes than its CPUs, read from /proc/PID/numa_maps."""

import re
from collections.abc import Collection, Iterable, Sequence

from castmates.linux.page_counts import numa_maps
from castmates.machine.topology import NumaNode
from castmates.protocols import Sample

SOURCE, METRIC = "numa_maps", "remote_memory_share"
_PAGES = re.compile(r"\bN(\d+)=(\d+)")
_SIZE = re.compile(r"\bkernelpagesize_kB=(\d+)")


def near_nodes(cpus: Collection[int], nodes: Sequence[NumaNode]) -> set[int] | None:
    """The nodes of these CPUs; None where the machine has one node alone, so that nothing can be remote."""
    return {node.id for node in nodes if set(node.cpus) & set(cpus)} if len(nodes) > 1 else None


def remote_share(texts: Iterable[str], near: Collection[int]) -> float | None:
    """The share of resident memory that lies on other nodes, over the maps of processes; None where none is known.

    A line counts pages of its own size: those of huge pages are larger.
    """
    kib: dict[bool, int] = {True: 0, False: 0}
    for line in (line for text in texts for line in text.splitlines()):
        size = _SIZE.search(line)
        for node, pages in _PAGES.findall(line):
            kib[int(node) in near] += int(pages) * (int(size[1]) if size else 4)
    whole = sum(kib.values())
    return kib[False] / whole if whole else None


def remote_sample(t_ns: int, member: str, pids: Iterable[int], near: Collection[int] | None) -> list[Sample]:
    """The reading of a member's processes as they are now, noted for a moment; none where it is not known."""
    share = remote_share(map(numa_maps, pids), near) if near else None
    return [] if share is None else [Sample(t_ns, SOURCE, member, METRIC, share)]
