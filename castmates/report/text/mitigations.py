"""What is tried against a loss, in words."""

from collections.abc import Mapping
from typing import Any

from castmates.analysis.partitions.attribution_parts import CHOSEN
from castmates.analysis.partitions.mitigations import NOTHING
from castmates.study.cache import Cache, rate_words
from castmates.study.curves import mask_of
from castmates.study.masks import popcount
from castmates.study.mix_keys import PERIOD
from castmates.study.rdt_trial import Tried
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


def amount_of(row: Row, partition: Partition | None, cache: Cache | None, tried: Tried | None = None) -> str:
    """How much of it on a machine with this cache and trial: "to 50 %"; the mask that was chosen."""
    if partition is None:
        return ""
    if row["mitigation"] == "ways":
        return _ways(partition, cache) + (f", best of {row['candidates']}" if row["how"] == CHOSEN else "")
    for share in partition.shares:
        if share.bandwidth is not None:
            return _throttle(share.bandwidth, cache, tried)
        if share.quota is not None:
            return f"to {share.quota} %" + (f" of each {share.period} ms" if share.period != PERIOD else "")
    return partition.name


def _ways(partition: Partition, cache: Cache | None) -> str:
    """The mask in words; a partition that is more than a split keeps its name."""
    own = mask_of(partition.shares[0])  # the lead's
    return f"{popcount(own)} of {cache.ways} ways" if partition.curve == SPLIT and own and cache else partition.name


def _throttle(value: int, cache: Cache | None, tried: Tried | None) -> str:
    """What was asked, and the least and most that was measured to be left of the rate of streams."""
    if cache is None or cache.bandwidth is None:
        return f"MB {value}"
    left = sorted(tried.left_on(cache, value).values()) if tried else []
    ends = " to ".join(dict.fromkeys(f"{each:.0f}" for each in (left[0], left[-1]))) if left else ""
    return f"to {rate_words(value, cache.bandwidth.unit)}" + (f" (measured: {ends} %)" if ends else "")
