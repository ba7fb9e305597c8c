"""What surrounds the CPUs of a block: siblings that should be quiet, and the rest of each last-level cache's CPUs."""

from collections.abc import Collection
from dataclasses import dataclass

from castmates.machine.topology import Topology


@dataclass(frozen=True, slots=True)
class Domain:
    """One last-level cache that the block uses."""

    name: str  # "l3:0"
    size: int  # online CPUs that share it
    neighbours: tuple[int, ...]  # those of them that are neither the block's nor siblings of the block's


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The CPUs beside those of a block."""

    quiet: tuple[int, ...] = ()  # on a core of the block, yet no member's
    domains: tuple[Domain, ...] = ()  # none where the block holds the whole domain

    @property
    def neighbours(self) -> dict[str, tuple[int, ...]]:
        """The neighbouring CPUs by cache domain."""
        return {domain.name: domain.neighbours for domain in self.domains}


def surroundings(topology: Topology, cpus: Collection[int]) -> Surroundings:
    """Find what lies beside these CPUs."""
    own = set(cpus)
    on_cores = {sibling for cpu in topology.cpus if cpu.id in own for sibling in cpu.siblings} | own
    domains = [
        Domain(f"l{llc.level}:{llc.id}", len(llc.cpus), tuple(cpu for cpu in llc.cpus if cpu not in on_cores))
        for llc in topology.llcs
        if own & set(llc.cpus)
    ]
    return Surroundings(tuple(sorted(on_cores - own)), tuple(domain for domain in domains if domain.neighbours))
