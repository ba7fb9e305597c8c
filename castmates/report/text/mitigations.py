"""What is tried against a loss, in words."""

import re
from collections.abc import Mapping
from typing import Any

from castmates.analysis.partitions.isolated import CHOSEN
from castmates.analysis.partitions.mitigations import NOTHING

Row = Mapping[str, Any]
NAMES = {
    NOTHING: "nothing is done",
    "ways": "separate cache ways",
    "bandwidth": "memory bandwidth throttled",
    "code": "ways for code alone",
    "core": "siblings idle",
    "socket": "in another cache",
    "other-socket": "on another socket",
    "quota": "CPU time limited",
}


def name_of(row: Row) -> str:
    """What is done, with its amount where one row does not stand for all amounts."""
    return NAMES[row["mitigation"]]


def amount_of(row: Row) -> str:
    """How much of it: "50 %"; the mask that was chosen."""
    partition = str(row["partition"])
    if row["mitigation"] == "ways" and partition:
        best = f"best of {row['candidates']}: " if row["how"] == CHOSEN else ""
        return f"{best}{partition}"
    if match := re.search(r"-mb(\d+)$", partition):
        return f"MB {match[1]}"
    if match := re.fullmatch(r"quota-(\d+)(?:-every-(\d+)ms)?", partition):
        return f"to {match[1]} %" + (f" of each {match[2]} ms" if match[2] else "")
    return partition
