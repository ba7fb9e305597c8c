"""Way masks: sets of ways of a cache as integers, one bit for each way, bit 0 the first; as the kernel has them."""

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_

from castmates.study.cache import Cache

HEX = re.compile(r"(?:0x)?([0-9a-f]+)", re.IGNORECASE)


def make(ways: int, position: int = 0) -> int:
    """So many ways side by side, the first of them at this position."""
    if ways < 0 or position < 0:
        raise ValueError(f"no mask has {ways} ways at position {position}")
    return ((1 << ways) - 1) << position


def popcount(mask: int) -> int:
    """How many ways there are in a mask."""
    return mask.bit_count()


def positions(mask: int) -> tuple[int, ...]:
    """The places of its ways, rising."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def runs(mask: int) -> tuple[int, ...]:
    """The mask in pieces without a hole, rising; they are disjoint, and their union is the mask."""
    pieces, rest = [], mask
    while rest:
        first = rest & -rest
        piece = rest & ~(rest + first)  # the carry runs through the first ones up to the first hole
        pieces.append(piece)
        rest &= ~piece
    return tuple(pieces)


def is_contiguous(mask: int) -> bool:
    """Whether it has no hole; nothing has none."""
    return len(runs(mask)) <= 1


def longest_run(mask: int) -> int:
    """The largest piece without a hole, the lowest of several."""
    return max(runs(mask), key=popcount, default=0)


def union(masks: Iterable[int]) -> int:
    """The ways that are in any of them."""
    return reduce(or_, masks, 0)


def without(mask: int, taken: int) -> int:
    """What is left of a mask when ways are taken out."""
    return mask & ~taken


def pick(region: int, ways: int, start: int = 0) -> int:
    """So many ways of a region, from its `start`-th on; where the region has holes, so has the result."""
    places = positions(region)
    if ways < 0 or start < 0 or start + ways > len(places):
        raise ValueError(f"there are no {ways} ways from the {start}th on among the {len(places)} of {region:x}")
    return union(1 << place for place in places[start : start + ways])


def parse(text: str) -> int:
    """`0x00f`, `00f` and `F` are masks in hexadecimal digits."""
    digits = HEX.fullmatch(text.strip())
    if digits is None:
        raise ValueError('a way mask in hexadecimal digits and in quotes, such as "0x00f"')
    return int(digits[1], 16)


def text_of(mask: int, ways: int) -> str:
    """The mask as the kernel writes it for a cache of so many ways: hexadecimal, with leading zeros."""
    return f"{mask:0{max(1, -(-ways // 4))}x}"


def region(cache: Cache, avoid_shared: bool) -> int:
    """The ways that a study gives out: all, or those that I/O does not use, as far as they can form a mask."""
    left = without(cache.usable, cache.shareable) if avoid_shared else cache.usable
    return left if cache.sparse else longest_run(left)


def fewest(cache: Cache) -> int:
    """The smallest number of ways that a study gives to anybody: where the kernel takes none at all, it is one."""
    return max(1, cache.least_ways)


def refusal(mask: int, cache: Cache) -> str:
    """Why the kernel would not take this mask; "" where it would."""
    text = text_of(mask, cache.ways)
    if mask < 0 or without(mask, cache.full):
        return f"the mask {text} is out of range: this cache has {cache.ways} ways, {text_of(cache.full, cache.ways)}"
    if without(mask, cache.usable):
        return (
            f"the mask {text} goes beyond {text_of(cache.usable, cache.ways)}, the ways of the class in which programs "
            "are found here ('cache.beyond_site: true' permits it)"
        )
    if not mask and cache.least_ways:
        return f"the mask {text} has no way at all, and this machine wants at least {_ways(cache.least_ways)}"
    if not cache.sparse and not is_contiguous(mask):
        return f"the mask {text} has holes, and on this machine the ways of a mask must lie side by side"
    # Of a mask with holes the kernel counts the first piece only.
    first = popcount(runs(mask)[0]) if mask else 0
    if first < cache.least_ways:
        begins = "has" if is_contiguous(mask) else "begins with"
        return f"the mask {text} {begins} {_ways(first)}, and this machine wants at least {cache.least_ways}"
    return ""


def bytes_in(mask: int, cache: Cache) -> int | None:
    """How much of one last-level cache the mask is; None where the machine does not report its size."""
    return None if cache.way_bytes is None else popcount(mask) * cache.way_bytes


def ways_of_bytes(amount: int, cache: Cache) -> int:
    """The number of ways that comes nearest to an amount of one last-level cache, the larger of two."""
    if cache.way_bytes is None:
        raise ValueError("this machine does not show how large a way is; write ways, or per cent")
    return (2 * amount + cache.way_bytes) // (2 * cache.way_bytes)


def ways_of_share(share: float, cache: Cache) -> int:
    """The number of ways that comes nearest to a share of the cache's ways, the larger of two."""
    return int(share * cache.ways + 0.5)


def size_words(mask: int, cache: Cache) -> str:
    """`4 ways, 6 MiB`, as far as the machine reports it."""
    amount = bytes_in(mask, cache)
    return _ways(popcount(mask)) + (f", {amount / 2**20:.3g} MiB" if amount is not None else "")


def _ways(count: int) -> str:
    return f"{count} way{'s' * (count != 1)}"
