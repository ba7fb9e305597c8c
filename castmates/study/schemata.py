"""A share in the kernel's words: `L3:0=00f;1=00f MB:0=50;1=50`."""

from collections.abc import Iterable

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.spec import Share


def schemata_of(share: Share, domains: Iterable[int], cache: Cache) -> str:
    """A group's schemata on these last-level caches."""
    data = cache.full if share.ways is None else share.ways
    lines = {"L3": masks.text_of(data, cache.ways)} if cache.ways else {}
    if cache.cdp:
        code = data if share.code is None else share.code
        lines = {"L3CODE": masks.text_of(code, cache.ways), "L3DATA": masks.text_of(data, cache.ways)}
    if cache.bandwidth is not None:
        lines["MB"] = str(cache.bandwidth.most if share.bandwidth is None else share.bandwidth)
    places = list(domains)
    return " ".join(f"{name}:{';'.join(f'{place}={value}' for place in places)}" for name, value in lines.items())


def mask_of(share: Share | None) -> int | None:
    """The mask of everything that a member may fill, code and data; None where it has all."""
    if share is None or share.ways is None:
        return None
    return masks.union([share.ways, share.code or 0])
