"""What surrounds the CPUs of a launch: siblings that should be quiet, and the other CPUs of its caches and packages."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from castmates.machine.topology import Topology


@dataclass(frozen=True, slots=True)
class Domain:
    """A last-level cache, or a package, that the launch uses."""

    name: str  # "l3:0", "package0"
    size: int  # online CPUs that share it
    neighbours: tuple[int, ...]  # those of them that are neither the launch's nor siblings of the launch's


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The CPUs beside those of a launch."""

    quiet: tuple[int, ...] = ()  # on a core of the launch, yet no member's
    domains: tuple[Domain, ...] = ()  # caches; none where the launch holds the whole domain
    packages: tuple[Domain, ...] = ()  # those with more neighbours than their caches have: a second ring
    caches: tuple[int, ...] = ()  # the last-level caches of the launch's packages, by their ids

    @property
    def neighbours(self) -> dict[str, tuple[int, ...]]:
        """The neighbouring CPUs by cache, and by package."""
        return {domain.name: domain.neighbours for domain in (*self.domains, *self.packages)}


def surroundings(topology: Topology, cpus: Collection[int]) -> Surroundings:
    """Find what lies beside these CPUs."""
    own = set(cpus)
    on_cores = {sibling for cpu in topology.cpus if cpu.id in own for sibling in cpu.siblings} | own
    domains = _with_neighbours(
        Domain(f"l{llc.level}:{llc.id}", len(llc.cpus), tuple(cpu for cpu in llc.cpus if cpu not in on_cores))
        for llc in topology.llcs
        if own & set(llc.cpus)
    )
    first_ring = {cpu for domain in domains for cpu in domain.neighbours}
    members: dict[int, list[int]] = {}
    for cpu in topology.cpus:
        if cpu.online and cpu.package is not None:
            members.setdefault(cpu.package, []).append(cpu.id)
    used = {number: there for number, there in members.items() if own & set(there)}
    packages = _with_neighbours(
        Domain(f"package{number}", len(there), tuple(cpu for cpu in there if cpu not in on_cores))
        for number, there in sorted(used.items())
    )
    near = {cpu for there in used.values() for cpu in there}
    return Surroundings(
        tuple(sorted(on_cores - own)),
        domains,
        tuple(package for package in packages if set(package.neighbours) - first_ring),
        tuple(llc.id for llc in topology.llcs if near & set(llc.cpus)),
    )


def _with_neighbours(domains: Iterable[Domain]) -> tuple[Domain, ...]:
    return tuple(domain for domain in domains if domain.neighbours)
