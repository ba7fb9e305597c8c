"""A machine that was captured into a file, as planning and the check of a node see it."""

from dataclasses import dataclass
from pathlib import Path

from castmates.linux.host import memory_bytes
from castmates.machine.probes import usable_memory
from castmates.machine.topology import Topology, read_topology
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.study.cache import Cache
from castmates.study.cpus import format_cpu_list
from castmates.study.node_facts import LastLevel, NodeFacts


@dataclass(frozen=True)
class Elsewhere:
    """A captured machine that a study is planned for: what was measured here does not count there."""

    file: Path
    processor: str | None
    topology: Topology
    cache: Cache | None  # what resctrl can share out there
    memory_bytes: int | None
    has_counters: bool  # of the processor
    facts: NodeFacts  # by which a node is recognised


def captured_machine(file: Path) -> Elsewhere:
    """Read the machine that `castmates doctor --capture` wrote into this file."""
    from castmates.machine.capture.capture import opened, topology_of
    from castmates.machine.facts import cpu_model, has_counters  # a Snakefile is parsed without all this

    with opened(file) as root:
        topology, cache = topology_of(root, file), read_cache(root)
        return Elsewhere(
            file=file,
            processor=cpu_model(root),
            topology=topology,
            cache=cache,
            memory_bytes=usable_memory(root),
            has_counters=has_counters(root),
            facts=node_facts(root, topology, cache),
        )


def facts_here() -> NodeFacts:
    """What there is on this node."""
    return node_facts(Path("/"), read_topology(), read_cache())


def node_facts(root: Path, topology: Topology, cache: Cache | None) -> NodeFacts:
    """What a node is recognised by; what only holds for a user or a moment is left out."""
    from castmates.machine.facts import cpu_model

    online = [cpu for cpu in topology.cpus if cpu.online]
    return NodeFacts(
        processor=cpu_model(root),
        online=format_cpu_list(cpu.id for cpu in online),
        siblings=tuple(sorted({format_cpu_list(cpu.siblings) for cpu in online if len(cpu.siblings) > 1})),
        packages=len({cpu.package for cpu in online if cpu.package is not None}) or None,
        caches=tuple(
            LastLevel(id=each.id, bytes=each.bytes, ways=each.ways, cpus=format_cpu_list(each.cpus))
            for each in topology.llcs
        ),
        nodes=tuple(f"{node.id}: {format_cpu_list(node.cpus)}" for node in topology.nodes),
        memory_bytes=memory_bytes("MemTotal", root),
        ways=cache.ways if cache else None,
        groups=cache.groups if cache else None,
    )
