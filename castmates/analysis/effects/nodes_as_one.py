"""What may be said of several nodes together; pure, from their facts."""

from collections.abc import Mapping, Sequence
from typing import Any

from castmates.analysis.effects.mask_stamp import WORKS

Facts = Mapping[str, Any]


def as_one(nodes: Sequence[Facts]) -> Facts:
    """The facts of the first node, with the trial of way masks that shows least and the first peak of the memory."""
    if not nodes:
        return {}
    untested = next((node for node in nodes if not _masks_work(node)), nodes[0])
    peak = next((node["memory_peak"] for node in nodes if node.get("memory_peak")), None)
    return {**nodes[0], "way_masks": untested.get("way_masks"), "memory_peak": peak}


def _masks_work(node: Facts) -> bool:
    record = node.get("way_masks")
    return isinstance(record, Mapping) and record.get("verdict") == WORKS
