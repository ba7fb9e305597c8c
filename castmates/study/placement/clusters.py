"""Sub-NUMA clusters: memory nodes that divide a last-level cache among themselves."""

from collections.abc import Collection, Mapping


def clusters_of(cpus: Collection[int], nodes: Mapping[int, Collection[int]]) -> list[int]:
    """The nodes that divide a cache of these CPUs, by the CPUs of every node; empty where no two do."""
    inside = [node for node, own in nodes.items() if own and set(own) <= set(cpus)]
    # Emulated nodes (numa=fake) have the same CPUs, and divide no cache.
    apart = sum(len(nodes[node]) for node in inside) == len(cpus)
    return inside if len(inside) > 1 and apart else []
