"""What is tried against a loss, in words."""

from collections.abc import Mapping
from typing import Any

from castmates.analysis.partitions.attribution_parts import CHOSEN
from castmates.analysis.partitions.mitigations import NOTHING
from castmates.study.cache import Cache
from castmates.study.curves import mask_of
from castmates.study.masks import popcount
from castmates.study.mix_keys import PERIOD
from castmates.study.spec import Partition

Row = Mapping[str, Any]
SPLIT = "split"  # the curve of partitions that divide the ways, and no more
NAMES = {
    NOTHING: "nothing is done",
    "ways": "separate cache ways",
    "bandwidth": "antagonists' memory throttled",
    "code": "ways for its code alone",
    "core": "its siblings left idle",
    "socket": "antagonists in another cache",
    "other-socket": "antagonists on another socket",
    "quota": "antagonists' CPU time limited",
}


def name_of(row: Row) -> str:
    """What is done, with its amount where one row does not stand for all amounts."""
    return NAMES[row["mitigation"]]


def amount_of(row: Row, partition: Partition | None, cache: Cache | None) -> str:
    """How much of it on a machine with this cache: "to 50 %"; the mask that was chosen."""
    if partition is None:
        return ""
    if row["mitigation"] == "ways":
        return _ways(partition, cache) + (f", best of {row['candidates']}" if row["how"] == CHOSEN else "")
    for share in partition.shares:
        if share.bandwidth is not None:
            return _throttle(share.bandwidth, cache)
        if share.quota is not None:
            return f"to {share.quota} %" + (f" of each {share.period} ms" if share.period != PERIOD else "")
    return partition.name


def _ways(partition: Partition, cache: Cache | None) -> str:
    """The mask in words; a partition that is more than a split keeps its name."""
    own = mask_of(partition.shares[0])  # the lead's
    return f"{popcount(own)} of {cache.ways} ways" if partition.curve == SPLIT and own and cache else partition.name


def _throttle(value: int, cache: Cache | None) -> str:
    if cache is None or cache.bandwidth is None:
        return f"MB {value}"
    unit = cache.bandwidth.unit
    return f"to {value / 8:g} GB/s" if unit == "1/8 GB/s" else f"to {value} {unit}"
