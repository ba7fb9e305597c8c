"""A machine as placement sees it: which CPUs we may use, who shares what with whom, where memory lies."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

# Fastest first; kinds with a number, as "capacity 512", follow by it; cores that are all alike have none.
SPEED = ("core", "atom", "lowpower")
UNKNOWN_DISTANCE = 255  # the kernel's own number for "cannot be reached"


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU; what is not known is None."""

    id: int
    core: int  # unique on the machine
    llc: int | None = None  # id of its last-level cache
    node: int | None = None
    package: int | None = None
    kind: str | None = None
    online: bool = True
    allowed: bool = True
    isolated: bool = False  # not load-balanced by the kernel (isolcpus)
    tickless: bool = False  # nohz_full
    cluster: int | None = None  # of cores that share a cache below the last level

    @property
    def usable(self) -> bool:
        """Whether a member may sit there."""
        return self.online and self.allowed

    @property
    def slowness(self) -> int:
        """Less for a faster kind of core."""
        if self.kind is None:
            return 0
        return SPEED.index(self.kind) if self.kind in SPEED else -int(self.kind.rpartition(" ")[2])


@dataclass(frozen=True, slots=True)
class Core:
    """The usable CPUs of one physical core; they share everything else that we know of."""

    cpus: tuple[int, ...]
    first: Cpu
    whole: bool  # no online CPU of it belongs to others
    isolated: bool
    tickless: bool

    @property
    def llc(self) -> int | None:
        """The id of its last-level cache."""
        return self.first.llc

    @property
    def node(self) -> int | None:
        """Its memory node."""
        return self.first.node

    @property
    def package(self) -> int | None:
        """Its socket."""
        return self.first.package

    @property
    def kind(self) -> str | None:
        """Its kind, on machines with several."""
        return self.first.kind


@dataclass(frozen=True)
class Layout:
    """All CPUs of a machine, and the memory nodes that we may use."""

    cpus: tuple[Cpu, ...]
    memory: tuple[int, ...] = ()  # nodes that have memory for us
    distances: Mapping[tuple[int, int], int] = field(default_factory=dict)  # as the firmware reports them
    llc_bytes: Mapping[int, int] = field(default_factory=dict)  # of each last-level cache whose size is known
    llc_ways: Mapping[int, int] = field(default_factory=dict)  # the same for its associativity

    @cached_property
    def by_id(self) -> dict[int, Cpu]:
        """Every CPU by its number."""
        return {cpu.id: cpu for cpu in self.cpus}

    @cached_property
    def usable(self) -> tuple[int, ...]:
        """The CPUs that members may sit on."""
        return tuple(sorted(cpu.id for cpu in self.cpus if cpu.usable))

    @cached_property
    def isolated(self) -> frozenset[int]:
        """Usable CPUs that the kernel does not balance."""
        return frozenset(cpu.id for cpu in self.cpus if cpu.usable and cpu.isolated)

    @cached_property
    def cores(self) -> tuple[Core, ...]:
        """The usable physical cores, by their first CPU."""
        groups: dict[int, list[Cpu]] = {}
        for cpu in sorted(self.cpus, key=lambda cpu: cpu.id):
            if cpu.online:
                groups.setdefault(cpu.core, []).append(cpu)
        cores = []
        for group in groups.values():
            ours = [cpu for cpu in group if cpu.allowed]
            if ours:
                cores.append(
                    Core(
                        cpus=tuple(cpu.id for cpu in ours),
                        first=ours[0],
                        whole=len(ours) == len(group),
                        isolated=any(cpu.isolated for cpu in ours),
                        tickless=any(cpu.tickless for cpu in ours),
                    )
                )
        return tuple(sorted(cores, key=lambda core: core.cpus[0]))

    @cached_property
    def siblings(self) -> bool:
        """Whether some core that we may use runs several CPUs, ours or not."""
        return any(len(core.cpus) > 1 or not core.whole for core in self.cores)

    def clusters(self, llc: int) -> int:
        """How many memory nodes divide a last-level cache among them (sub-NUMA clustering); mostly one has it all."""
        here = [cpu.id for cpu in self.cpus if cpu.llc == llc and cpu.online]
        nodes: dict[int, list[int]] = {}
        for cpu in self.cpus:
            if cpu.node is not None and cpu.online:
                nodes.setdefault(cpu.node, []).append(cpu.id)
        return len(clusters_of(here, nodes)) or 1

    def distance(self, node: int | None, other: int | None) -> int:
        """How far apart two nodes are; a node is nearest to itself."""
        if node is None or other is None:
            return UNKNOWN_DISTANCE
        return 0 if node == other else self.distances.get((node, other), UNKNOWN_DISTANCE)


def clusters_of(cpus: Collection[int], nodes: Mapping[int, Collection[int]]) -> list[int]:
    """The nodes that divide a cache of these CPUs, by the CPUs of every node; empty where no two do."""
    inside = [node for node, own in nodes.items() if own and set(own) <= set(cpus)]
    # Emulated nodes (numa=fake) have the same CPUs, and divide no cache.
    apart = sum(len(nodes[node]) for node in inside) == len(cpus)
    return inside if len(inside) > 1 and apart else []


# How near a core is to the lead: the places that `distance` names.

SAME_CPUS, SIBLINGS, FURTHER_IN_CACHE = "cpu", "smt", "llc"


class Nearness:
    """The cores around a lead on its CPUs, by place; each core is at one place."""

    def __init__(self, lead: Sequence[int], layout: Layout) -> None:
        mine = [layout.by_id[cpu] for cpu in lead]
        self._cores = {cpu.core for cpu in mine}
        self._llcs = {cpu.llc for cpu in mine} - {None}
        self._packages = {cpu.package for cpu in mine} - {None}
        self._close = _closeness(mine, layout)
        # Where the whole cache is as near as can be, its cores are meant by `llc` too.
        self._has_further = any(self._place(core) == FURTHER_IN_CACHE for core in layout.cores)

    def at(self, place: str, cores: Sequence[Core]) -> list[Core]:
        """Those of the cores that are at this place, in their order."""
        wanted = "core" if place == FURTHER_IN_CACHE and not self._has_further else place
        return [core for core in cores if self._place(core) == wanted]

    def _place(self, core: Core) -> str:
        if core.first.core in self._cores:
            return SIBLINGS
        if core.llc in self._llcs:
            return "core" if self._close(core.first) else FURTHER_IN_CACHE
        if core.package is None or not self._packages:
            return ""  # which socket it is on is not known
        return "socket" if core.package in self._packages else "other-socket"


def _closeness(mine: Sequence[Cpu], layout: Layout) -> Callable[[Cpu], bool]:
    """What makes a core of the lead's cache a near one: a common L2 where several cores have one, else the node."""
    clusters = {cpu.cluster for cpu in mine} - {None}
    own = {cpu.core for cpu in mine}
    if any(cpu.cluster in clusters and cpu.core not in own for cpu in layout.cpus):
        return lambda cpu: cpu.cluster in clusters
    nodes = {cpu.node for cpu in mine}
    return lambda cpu: cpu.node in nodes
