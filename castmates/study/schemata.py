"""A share in the kernel's words: `L3:0=00f;1=00f MB:0=50;1=50`."""

from collections.abc import Iterable

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.spec import Share


def schemata_of(share: Share, domains: Iterable[int], cache: Cache) -> str:
    """A group's schemata on these last-level caches."""
    data = cache.usable if share.ways is None else share.ways
    lines = {"L3": masks.text_of(data, cache.ways)} if cache.ways else {}
    if cache.cdp:
        code = data if share.code is None else share.code
        lines = {"L3CODE": masks.text_of(code, cache.ways), "L3DATA": masks.text_of(data, cache.ways)}
    if cache.bandwidth is not None:
        unthrottled = cache.bandwidth.allowed or cache.bandwidth.most
        lines["MB"] = str(unthrottled if share.bandwidth is None else share.bandwidth)
    places = list(domains)
    return " ".join(f"{name}:{';'.join(f'{place}={value}' for place in places)}" for name, value in lines.items())


def mask_of(share: Share | None) -> int | None:
    """The mask of everything that a member may fill, code and data; None where it has all.

    Where its caches differ, it is the one with the fewest ways.
    """
    if share is None or share.ways is None:
        return None
    if share.by_cache:
        return min((mask for _, mask in share.by_cache), key=masks.popcount)
    return masks.union([share.ways, share.code or 0])


def overlap(one: Share, other: Share) -> bool:
    """Whether these have ways in common, on any cache; one that does not differ between caches is alike on all."""
    ours, theirs = dict(one.by_cache), dict(other.by_cache)
    whole, others = mask_of(one), mask_of(other)
    if whole is None or others is None:
        return True
    if ours and theirs:
        return any(ours[cache] & theirs[cache] for cache in ours.keys() & theirs.keys())
    return any(mine & its for mine in ours.values() or [whole] for its in theirs.values() or [others])
