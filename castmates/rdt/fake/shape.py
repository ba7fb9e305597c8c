"""What a machine has that resctrl could share out or watch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Throttle:
    """A throttle of memory bandwidth, one for each last-level cache."""

    closids: int = 8
    least: int = 10
    step: int = 10
    most: int = 100  # what a new group gets: no throttle
    linear: bool = True
    mode: str = "max"  # of info/MB/thread_throttle_mode; "" where the file is absent
    digits: int = 3  # width of its column
    becomes: Mapping[int, int] = field(default_factory=dict)  # value -> what the processor makes of it, unseen
    fraction: int = 0  # bits of a binary fraction that the hardware keeps instead (Arm); 0: it keeps the number

    def kept(self, wanted: int) -> int:
        """What the kernel shows after a write: the next whole step; on Arm the upper bound of the nearest band."""
        whole = -(-wanted // self.step) * self.step
        if not self.fraction:
            return whole
        bands = 1 << self.fraction
        band = max((2 * whole * bands + self.most) // (2 * self.most), 1)
        return (2 * band * self.most + bands) // (2 * bands)


@dataclass(frozen=True, slots=True)
class Ways:
    """Way masks of the caches of one level, which are all alike."""

    resource: str  # as its line of schemata begins: L2, L3
    caches: Mapping[int, tuple[int, ...]]  # cache id -> its CPUs
    cache_bytes: int
    ways: int  # bits of a mask
    shareable: int  # ways that I/O uses too
    least_bits: int
    sparse: bool  # masks may have holes
    closids: int  # half of them with CDP
    cdp: bool  # separate masks for code and data can be had

    @property
    def full(self) -> int:
        """The mask of all ways."""
        return (1 << self.ways) - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A machine with last-level caches that are all alike."""

    domains: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: {0: (0, 1, 2, 3)})  # cache id -> its CPUs
    cache_bytes: int = 18 * MIB  # of each domain
    ways: int = 12  # bits of a mask; 0: no cache allocation
    shareable: int = 0xC00  # ways that I/O uses too
    least_bits: int = 1
    sparse: bool = False  # masks may have holes
    closids: int = 16  # of the cache; half of them with CDP
    cdp: bool = True  # separate masks for code and data can be had
    throttle: Throttle | None = field(default_factory=Throttle)
    events: tuple[str, ...] = EVENTS  # (): no monitoring
    rmids: int = 32
    scale: int = 65536  # bytes; monitors count in these
    nodes: Mapping[int, tuple[int, ...]] = field(
        default_factory=dict
    )  # domain -> its sub-NUMA nodes, where it has such
    mbm_counters: int = 0  # of each domain, that belong to groups (AMD's ABMC); 0: the hardware counts whom it likes
    io_alloc: bool = False  # the highest class can be given to I/O
    tied: int = 0  # ways that the processor gives together only, which the kernel does not see
    second: Ways | None = None  # masks of the second-level caches
    slow: Throttle | None = None  # of slow memory (SMBA)
    rmids_of_class: int = 0  # Arm: monitoring ids belong to a class, so many to each; 0: they are independent
    configurable: bool = False  # what the events of traffic count can be chosen (BMEC)

    @property
    def allocates(self) -> bool:
        """Whether anything can be shared out."""
        return bool(self.ways or self.throttle or self.second or self.slow)

    @property
    def monitors(self) -> bool:
        """Whether anything can be watched."""
        return bool(self.events)

    @property
    def is_arm(self) -> bool:
        """Whether its controls are MPAM's, which lie in memory and not in registers of a CPU."""
        return bool(self.rmids_of_class)

    @property
    def cpus(self) -> frozenset[int]:
        """All CPUs."""
        more = self.second.caches if self.second else {}
        return frozenset(cpu for caches in (self.domains, more) for cpus in caches.values() for cpu in cpus)

    @property
    def possible(self) -> int:
        """How many CPUs the kernel's CPU masks have room for."""
        return max(self.cpus, default=0) + 1

    @property
    def full(self) -> int:
        """The mask of all ways of the last-level cache."""
        return (1 << self.ways) - 1

    @property
    def last(self) -> Ways | None:
        """The way masks of the last-level caches."""
        if not self.ways:
            return None
        mask = self.shareable, self.least_bits, self.sparse
        return Ways("L3", self.domains, self.cache_bytes, self.ways, *mask, self.closids, self.cdp)

    def cpus_of_node(self, domain: int, node: int) -> tuple[int, ...]:
        """The CPUs of a sub-NUMA node: its part of the cache's cores, each with its threads."""
        cpus, nodes = self.domains[domain], self.nodes[domain]
        size = len(cpus) // len(nodes)
        place = nodes.index(node) * size
        return tuple(cpus[place : place + size])


# The machines of the lab.
LAB = Shape()
LAB_TWO_SOCKETS = Shape(domains={0: (0, 1), 1: (2, 3)})
LAB_NO_THROTTLE = Shape(throttle=None)
LAB_ALLOCATION_ONLY = Shape(
    cache_bytes=11 * 1536 * 1024, ways=11, shareable=0x600, cdp=False, throttle=None, events=(), rmids=0
)
LAB_MONITORING_ONLY = Shape(ways=0, shareable=0, closids=0, cdp=False, throttle=None)
NO_RDT = Shape(ways=0, shareable=0, closids=0, cdp=False, throttle=None, events=(), rmids=0)

# Others, after their makers' documents and the kernel's sources.
AMD_CHIPLETS = Shape(  # ids with gaps, masks with holes and even empty ones, bandwidth in 1/8 GB/s
    domains={
        **{n: (2 * n, 2 * n + 1) for n in range(8)},
        **{n: (2 * n - 16, 2 * n - 15) for n in range(16, 24)},
    },
    cache_bytes=32 * MIB,
    ways=16,
    shareable=0,
    least_bits=0,
    sparse=True,
    throttle=Throttle(closids=16, least=0, step=1, most=2048, linear=False, mode="", digits=4),
    rmids=256,
    scale=64,
)
SUB_NUMA = Shape(  # two nodes in each cache, each with its monitors
    domains={0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}, nodes={0: (0, 1), 1: (2, 3)}, rmids=16, scale=32768
)
HASWELL = Shape(  # masks of two ways at least
    domains={0: tuple(range(18)), 1: tuple(range(18, 36))},
    cache_bytes=45 * MIB,
    ways=20,
    shareable=0xC0000,
    least_bits=2,
    closids=4,
    cdp=False,
    throttle=None,
    rmids=144,
    scale=49152,
)
