"""Where a load was served from, by the bits in which Linux hands it to user space (perf_event.h, perf_mem_data_src)."""

from typing import NamedTuple

LOAD = 0x02
# `mem_lvl_num`, which newer kernels fill; 0 and 15 are no level.
LEVELS = {
    1: "L1",
    2: "L2",
    3: "LLC",
    4: "L4",
    5: "L2",  # its buffer of misses
    6: "memory-side cache",
    7: "L0",
    8: "uncached",
    9: "CXL",
    10: "I/O",
    11: "another cache",
    12: "fill buffer",
    13: "DRAM",
    14: "persistent memory",
}
# `mem_lvl`, bits of older kernels; of several the slowest, because it is what served the load.
HIT, MISS, REMOTE_CACHE, FARTHER_CACHE = 0x02, 0x04, 0x400, 0x800
REMOTE_RAM = 0x100 | 0x200
FLAGS = (
    (0x2000, "uncached"),
    (0x1000, "I/O"),
    (REMOTE_RAM | 0x80, "DRAM"),
    (0x40, "LLC"),  # before other caches: AMD sets both bits for the caches of one node
    (REMOTE_CACHE | FARTHER_CACHE, "another cache"),
    (0x20, "L2"),
    (0x10, "fill buffer"),
    (0x08, "L1"),
)
UNKNOWN = "not known"
ORDER = (*dict.fromkeys(["L0", "L1", "fill buffer", "L2", "LLC", "L4", *LEVELS.values()]), UNKNOWN)


class Served(NamedTuple):
    """What served a load."""

    is_load: bool
    level: str
    is_remote: bool  # on another node


def served(data_source: int) -> Served:
    """Read the bits of one sample."""
    operation, level = data_source & 0x1F, data_source >> 5 & 0x3FFF
    number, remote, hops = data_source >> 33 & 0xF, data_source >> 37 & 1, data_source >> 43 & 7
    name = LEVELS.get(number, "")
    if not name and not level & MISS:  # "L1 miss" is all that some records know
        name = next((each for bits, each in FLAGS if level & bits), "")
    # One hop is another core of the same node, where the number of hops is known; AMD's caches of one node come with
    # the bit of a remote cache, too.
    far = hops >= 2 or (remote and not hops)
    by_flags = level & (REMOTE_RAM | FARTHER_CACHE) or (level & REMOTE_CACHE and not level & 0x40 and hops != 1)
    return Served(bool(operation & LOAD), name or UNKNOWN, bool(far or by_flags))
