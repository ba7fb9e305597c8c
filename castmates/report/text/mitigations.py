"""What is tried against a loss, in words."""

import re
from collections.abc import Mapping
from typing import Any

from castmates.analysis.partitions.isolated import CHOSEN
from castmates.analysis.partitions.mitigations import NOTHING
from castmates.study.cache import Cache

Row = Mapping[str, Any]
NAMES = {
    NOTHING: "nothing is done",
    "ways": "separate cache ways",
    "bandwidth": "neighbours' memory throttled",
    "code": "ways for its code alone",
    "core": "its siblings left idle",
    "socket": "neighbours in another cache",
    "other-socket": "neighbours on another socket",
    "quota": "neighbours' CPU time limited",
}


def name_of(row: Row) -> str:
    """What is done, with its amount where one row does not stand for all amounts."""
    return NAMES[row["mitigation"]]


def amount_of(row: Row, cache: Cache | None) -> str:
    """How much of it on a machine with this cache: "to 50 %"; the mask that was chosen."""
    partition = str(row["partition"])
    if row["mitigation"] == "ways" and partition:
        best = f", best of {row['candidates']}" if row["how"] == CHOSEN else ""
        return f"{_ways(partition, cache)}{best}"
    if match := re.search(r"-mb(\d+)$", partition):
        return _throttle(int(match[1]), cache)
    if match := re.fullmatch(r"quota-(\d+)(?:-every-(\d+)ms)?", partition):
        return f"to {match[1]} %" + (f" of each {match[2]} ms" if match[2] else "")
    return partition


def _ways(partition: str, cache: Cache | None) -> str:
    """The mask in words; a partition that is not named by its ways alone keeps its name."""
    match = re.fullmatch(r"split-(\d+)", partition)
    return f"{match[1]} of {cache.ways} ways" if match and cache else partition


def _throttle(value: int, cache: Cache | None) -> str:
    if cache is None or cache.bandwidth is None:
        return f"MB {value}"
    unit = cache.bandwidth.unit
    return f"to {value / 8:g} GB/s" if unit == "1/8 GB/s" else f"to {value} {unit}"
