"""What a machine has that resctrl could share out or watch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Throttle:
    """The throttle of memory bandwidth, one for each last-level cache."""

    closids: int = 8
    least: int = 10
    step: int = 10
    most: int = 100  # what a new group gets: no throttle
    linear: bool = True
    mode: str = "max"  # of info/MB/thread_throttle_mode; "" where the file is absent
    digits: int = 3  # width of its column
    becomes: Mapping[int, int] = field(default_factory=dict)  # value -> what the processor makes of it, unseen


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
    tied: int = 0  # ways that the processor gives together only, which the kernel does not see

    @property
    def allocates(self) -> bool:
        """Whether anything can be shared out."""
        return bool(self.ways or self.throttle)

    @property
    def monitors(self) -> bool:
        """Whether anything can be watched."""
        return bool(self.events)

    @property
    def cpus(self) -> frozenset[int]:
        """All CPUs."""
        return frozenset(cpu for cpus in self.domains.values() for cpu in cpus)

    @property
    def possible(self) -> int:
        """How many CPUs the kernel's CPU masks have room for."""
        return max(self.cpus, default=0) + 1

    @property
    def full(self) -> int:
        """The mask of all ways."""
        return (1 << self.ways) - 1


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
