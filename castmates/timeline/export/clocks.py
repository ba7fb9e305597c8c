"""On which clock the times of a timeline are, for the formats that have to name it."""

from collections.abc import Mapping
from typing import Any

MONOTONIC, REALTIME, UNKNOWN = "CLOCK_MONOTONIC", "CLOCK_REALTIME", "unknown"


def clock_of(about: Mapping[str, Any]) -> str:
    """MONOTONIC for traces of our own; of imported ones what their record names, or UNKNOWN where that is neither."""
    imported = about.get("imported")
    if imported is None:
        return MONOTONIC
    named = imported.get("clock", "")
    return named if named in (MONOTONIC, REALTIME) else UNKNOWN


def pairs_of(about: Mapping[str, Any], begin: int) -> list[tuple[int, int | None]]:
    """Moments on the timeline's clock, and the same on the real-time clock where that is known."""
    if clock_of(about) == REALTIME:
        return [(begin, begin)]
    pairs = about.get("clocks") or [{"steady_ns": begin}]
    return [(int(pair["steady_ns"]), None if pair.get("real_ns") is None else int(pair["real_ns"])) for pair in pairs]
