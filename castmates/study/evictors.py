"""How much memory it takes to empty the last-level caches of a cohort with way masks; it is in no member's need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from castmates.study.spec import Member, Share

CACHE_TIMES = 2  # the size of a cache, or of a part that one memory node fills, that is written in a pass


@dataclass(frozen=True)
class CachePart:
    """What of a last-level cache one memory node fills."""

    llc: int
    node: int | None  # None where the cache is not divided
    cpus: frozenset[int]
    bytes: int


def evictors_are_needed(shares: Iterable[Share]) -> bool:
    """Whether some of these are way masks, so that what lies in the caches could differ between partitions."""
    return any(share.ways is not None or share.code is not None for share in shares)


def memory_to_evict(parts: Iterable[CachePart], members: Sequence[Member]) -> int:
    """The bytes that are written, each of them into separate memory, for the caches of these members."""
    cpus = {cpu for member in members for cpu in member.cpus}
    bound = {node for member in members for node in member.nodes}
    known = list(parts)
    used = {part.llc for part in known if part.cpus & cpus}
    return CACHE_TIMES * sum(
        part.bytes for part in known if part.llc in used and (part.cpus & cpus or part.node in bound)
    )
