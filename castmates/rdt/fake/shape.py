"""What a machine has that resctrl could share out or watch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

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


# Machines that users have, as Linux's resctrl shows them: sizes, ways, classes, ids and files of each.
#
# Every value is a fact of a public source, which stands beside it; what has none is marked as assumed. Ways, ways of
# I/O, CDP, holes, classes and monitoring ids of the last-level cache, and AMD's throttles, are what Linux reads from
# the CPUID registers of these parts (InstLatx64's dumps; the table stands in tests/unit/rdt/test_owned.py). There are
# fewer cores than in the processors, so that tests are quick: nothing that resctrl shows depends on them.

KIB = 1 << 10
AMD = Throttle(closids=16, least=0, step=1, most=2048, linear=False, mode="", digits=4)
ZEN_5 = replace(AMD, most=4096)


def around(ids: Iterable[int], cores: int, threads: int = 2) -> dict[int, tuple[int, ...]]:
    """Caches with so many cores each, whose CPUs are numbered as firmware does: all first threads come first."""
    numbers = list(ids)
    total = len(numbers) * cores
    return {
        number: tuple(core + thread * total for core in range(at, at + cores) for thread in range(threads))
        for at, number in zip(range(0, total, cores), numbers, strict=True)
    }


def _of_cores(domains: Mapping[int, tuple[int, ...]], threads: int = 2) -> dict[int, tuple[int, ...]]:
    """Second-level caches, one for each core."""
    cpus = [cpu for each in domains.values() for cpu in each]
    return {at: tuple(cpus[threads * at : threads * at + threads]) for at in range(len(cpus) // threads)}


_TWO_XEONS = around((0, 1), 6)

# Xeon Gold 6138, as intel-cmt-cat's issues 135, 246 and 290 show it. Linux switches its L3 CAT off unless the kernel's
# command line has rdt=l3cat (arch/x86/kernel/cpu/resctrl/core.c, __check_quirks_intel). Its I/O ways are tied
# (issue 135: "setting one of these bits will always result in both bits being set"), and 70 and 80 % of bandwidth
# become 90 (issues 69 and 115). Monitoring ids and their unit are those of a part with 24 cores.
SKYLAKE_SP = Shape(
    domains=_TWO_XEONS,
    cache_bytes=11 * 2560 * KIB,
    ways=11,
    shareable=0x600,
    tied=0x600,
    throttle=Throttle(becomes={70: 90, 80: 90}),
    rmids=192,
    scale=98304,
)
# Xeon Platinum 8352Y: 48 MiB in 12 ways, of which I/O has two. It has no CDP. Classes of MB as those of its successors
# (assumed).
ICE_LAKE = Shape(
    domains=_TWO_XEONS,
    cache_bytes=48 * MIB,
    closids=15,
    cdp=False,
    throttle=Throttle(closids=15),
    rmids=288,
    scale=73728,
)

# Masks of second-level caches: info/L2 of test/data/resctrl.l2l3mb in intel/goresctrl, from an Emerald Rapids with two
# caches of 320 MiB, which also has 15 classes for L3 and MB, 512 monitoring ids and thread_throttle_mode "max". That
# eight classes of L2 bound the others is confirmed in intel/goresctrl, pull request 154.
_L2 = Ways("L2", _of_cores(_TWO_XEONS), 2 * MIB, 16, 0, 1, False, 8, True)
# Xeon Platinum 8480+: 105 MiB in 15 ways, with the L2 of its successor.
SAPPHIRE_RAPIDS = Shape(
    domains=_TWO_XEONS,
    cache_bytes=105 * MIB,
    ways=15,
    shareable=0x6000,
    closids=15,
    throttle=Throttle(closids=15),
    rmids=352,
    scale=90112,
    second=_L2,
)
# Xeon 6980P, whose default is three clusters in each cache of 504 MiB. Tony Luck's cover letter of "Add support for
# Sub-NUMA cluster (SNC) systems" shows nodes 3 to 5 below mon_L3_01, with readings in steps of 73728 bytes, whose sum
# mon_L3_01 is; ids and their unit are divided by the clusters (rdt_get_mon_l3_config), `size` is not
# (rdtgroup_cbm_to_size). Masks may have holes (commit 0e3cd31f6e90). Ways and classes are those of Granite Rapids-D;
# ids are as many as belong to this unit on all parts since Ice Lake.
GRANITE_RAPIDS_SNC3 = Shape(
    domains=_TWO_XEONS,
    cache_bytes=504 * MIB,
    ways=16,
    shareable=0xC000,
    sparse=True,
    closids=15,
    throttle=Throttle(closids=15),
    rmids=288,
    scale=73728,
    nodes={0: (0, 1, 2), 1: (3, 4, 5)},
    second=_L2,
)
# EPYC 7742: sixteen core complexes of 16 MiB in each socket. 16 classes, 1/8 GB/s and 2048 for "no limit" are those of
# koordinator's issue 1777 (its successor) and of the kernel's documentation; a mask may be empty
# (rdt_init_res_defs_amd).
ROME = Shape(
    domains=around(range(32), 2),
    cache_bytes=16 * MIB,
    ways=16,
    shareable=0,
    least_bits=0,
    sparse=True,
    throttle=AMD,
    rmids=256,
    scale=64,
)
# EPYC 9654: twelve complexes of 32 MiB in each socket, so that ids have a gap; a throttle of slow memory (CXL) and
# configurable events, as Documentation/filesystems/resctrl.rst shows both.
GENOA = Shape(
    domains=around((*range(12), *range(16, 28)), 2),
    cache_bytes=32 * MIB,
    ways=16,
    shareable=0,
    least_bits=0,
    sparse=True,
    throttle=AMD,
    slow=AMD,
    rmids=256,
    scale=64,
    configurable=True,
)
# EPYC 9755: sixteen complexes of 32 MiB in each socket. Traffic is counted by 32 counters in each domain, which groups
# are assigned while there are some, and I/O can have a class (the kernel's documentation of mbm_assign_mode, io_alloc).
# intel-cmt-cat's issue 311 shows 16 classes for L3, MB and SMBA on Linux 7.2.
TURIN = Shape(
    domains=around(range(32), 2),
    cache_bytes=32 * MIB,
    ways=16,
    shareable=0,
    least_bits=0,
    sparse=True,
    throttle=ZEN_5,
    slow=ZEN_5,
    rmids=4096,
    scale=64,
    mbm_counters=32,
    io_alloc=True,
)
# Core i7-12700: its flags are rdt_a, cat_l2 and cdp_l2 (many lists of /proc/cpuinfo), so that resctrl has an L2 alone,
# of which Linux asks the core that it starts on: 10 ways of 1.25 MiB, though those of the efficient cores have 16.
HYBRID_CLIENT = Shape(
    domains={0: tuple(range(20))},
    cache_bytes=25 * MIB,
    ways=0,
    shareable=0,
    closids=0,
    cdp=False,
    throttle=None,
    events=(),
    rmids=0,
    second=Ways(
        "L2",
        {**{n: (2 * n, 2 * n + 1) for n in range(8)}, 8: (16, 17, 18, 19)},
        1280 * KIB,
        10,
        0,
        1,
        False,
        8,
        True,
    ),
)
# An Arm server with MPAM, after drivers/resctrl/mpam_resctrl.c: masks with holes, of one way at least; all ways count
# as shared, since devices use class 0; every control has the system's number of classes; throttles are kept as a binary
# fraction, here of 5 bits; llc_occupancy is the only event; monitoring ids belong to a class. Sizes are assumed.
_TWO_ARMS = around((1, 2), 6, threads=1)
ARM_MPAM = Shape(
    domains=_TWO_ARMS,
    cache_bytes=112 * MIB,
    ways=16,
    shareable=0xFFFF,
    sparse=True,
    closids=64,
    cdp=False,
    throttle=Throttle(closids=64, least=3, step=4, mode="", fraction=5),
    events=EVENTS[:1],
    rmids=64 * 4,
    scale=64,
    second=Ways("L2", _of_cores(_TWO_ARMS, 1), MIB, 8, 0xFF, 1, True, 64, False),
    rmids_of_class=4,
)
