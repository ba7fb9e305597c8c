"""Masks that cut through the ways that I/O fills too: they have some of these ways, but not all.

Some processors give these ways together only, so that such a mask has more ways than were asked for, and two masks
that look separate overlap. The kernel does not show it.
"""

from collections.abc import Iterable

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.spec import Partition


def cuts_through(mask: int, shareable: int) -> bool:
    """Whether a mask has some of the ways that I/O fills too, but not all, of those that lie side by side."""
    return any(mask & run not in (0, run) for run in masks.runs(shareable))


def cut_by_any(wanted: Iterable[int | None], cache: Cache | None) -> bool:
    """Whether any of these masks does; None is no mask. Where I/O fills all ways there is nothing to cut through."""
    if cache is None or cache.shareable == cache.full:
        return False
    return any(mask is not None and cuts_through(mask, cache.shareable) for mask in wanted)


def cut_by(partition: Partition, cache: Cache | None) -> bool:
    """Whether the mask of anybody under this partition does, code's and data's apart."""
    return cut_by_any((mask for share in partition.shares for mask in (share.ways, share.code)), cache)
