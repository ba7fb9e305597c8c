"""What a program can use of its last-level caches, and sizes in shares of that, such as `4llc`, in bytes.

The kernel shows a cache's whole size. Under sub-NUMA clustering the memory of each cluster fills a part of it alone,
and a way is a bit of a mask where masks can be set. So sizes are resolved here, when a study is planned, and a member's
command has bytes; a kernel that is run by hand resolves them itself by what sysfs shows.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from castmates.study.model import Workload
from castmates.study.placement.layout import Layout

NATIVE = "native"  # the environment of the programs that know these sizes
GRAIN = 4096
MIB = 1 << 20
# Of a set that is to be larger than the cache: a hypervisor may show a smaller cache than there is, and each thread's
# part must not fit into its own second level.
LEAST, LEAST_OF_A_CPU = 64 << 20, 8 << 20
MEMORY_SHARE = 1 / 8  # that such a set may take at most
STEP = 256 << 20
STARTING = 9 / 8  # of its working set; some programs take an eighth more while they start
_SHARE = re.compile(r"(.*:)?(\d+(?:\.\d+)?)(llc|ways?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LastLevel:
    """The part of the last-level caches that a program on some CPUs can use."""

    bytes: int  # of one cache, or of the part that the memory of one sub-NUMA cluster fills
    ways: int | None  # of it; None where that is not known
    caches: int = 1  # such caches, or parts, that its CPUs lie on

    @property
    def total(self) -> int:
        """All of it."""
        return self.bytes * self.caches


ASSUMED = LastLevel(32 << 20, 16)  # where the kernel does not show the cache; a caution names it


@dataclass(frozen=True, slots=True)
class CachePlace:
    """Where a program runs."""

    cpus: Sequence[int]
    cache: LastLevel | None  # None where the kernel does not show it
    memory: int | None = None  # bytes of the machine; None where that does not matter


def last_level(
    layout: Layout, cpus: Sequence[int], mask_bits: int = 0, nodes: Collection[int] = ()
) -> LastLevel | None:
    """The part that programs on these CPUs can use; `mask_bits` is the width of a mask, where masks can be set.

    Memory that is bound to `nodes` fills their parts of a divided cache. Without them, or with far ones, it is taken to
    lie around the CPUs.
    """
    here = [layout.by_id[cpu] for cpu in cpus if cpu in layout.by_id]
    known = {cpu.llc for cpu in here if cpu.llc is not None and layout.llc_bytes.get(cpu.llc)}
    if not known:
        return None
    clusters = {llc: layout.clusters(llc) for llc in known}
    divided = {llc for llc, count in clusters.items() if count > 1}
    parts = {(cpu.llc, cpu.node) for cpu in layout.cpus if cpu.node in nodes and cpu.llc in divided} or {
        (cpu.llc, cpu.node if clusters[cpu.llc] > 1 else None) for cpu in here if cpu.llc in known
    }
    smallest = min(layout.llc_bytes[llc] // clusters[llc] for llc in known)
    ways = mask_bits or min((layout.llc_ways.get(llc, 0) for llc in known), default=0)
    return LastLevel(smallest, ways or None, len(parts))


def sized_workload(workload: Workload, place: CachePlace) -> Workload:
    """The workload with its sizes in bytes, and with the memory that they take."""
    if workload.environment != NATIVE:
        return workload
    words: list[str] = []
    sizes: list[int] = []
    for before, word in zip(["", *workload.words], workload.words, strict=False):
        size = _resolved(word, place) if before == "--bytes" or ":" in word else None
        words.append(word if size is None else f"{word[: word.rfind(':') + 1]}{size}")
        sizes += [] if size is None else [size]
    if not sizes:
        return workload
    memory = f"{(workload.memory_bytes + STARTING * sum(sizes)) / 1e6:.0f} MB"
    return workload.model_copy(update={"command": words, "options": {}, "memory": memory})


def shortened(workload: Workload, place: CachePlace) -> str:
    """What a size that was to be larger than the cache is cut to, because memory is short; "" where nothing is cut.

    Where memory is limited by a control group, another limit makes another size, so this has to be told.
    """
    if workload.environment != NATIVE or place.memory is None:
        return ""
    whole = replace(place, memory=None)
    for word in workload.words:
        size, wanted = _resolved(word, place), _resolved(word, whole)
        if size is not None and wanted is not None and size < wanted:
            return (
                f"its {word.rpartition(':')[2]} would be {wanted / MIB:.4g} MiB, and it takes {size / MIB:.4g} MiB, "
                f"because only {place.memory / MIB:.4g} MiB of memory may be used here; with more it takes more, and "
                "is measured again."
            )
    return ""


def _resolved(word: str, place: CachePlace) -> int | None:
    """The bytes of a size in shares of the cache; None where it is another size, or ways that are not known."""
    share, cache = _SHARE.fullmatch(word), place.cache or ASSUMED
    if share is None or (share[3] != "llc" and cache.ways is None):
        return None
    whole = cache.total if share[3] == "llc" else cache.total / (cache.ways or 1)
    wanted = int(float(share[2]) * whole)
    if share[3] == "llc" and float(share[2]) >= 1:
        least = max(LEAST, LEAST_OF_A_CPU * len(place.cpus))
        # In coarse steps: the memory that a kernel shows changes a little with each version of it.
        most = wanted if place.memory is None else int(MEMORY_SHARE * place.memory) // STEP * STEP
        wanted = min(max(wanted, least), max(most, least))
    return wanted // GRAIN * GRAIN
