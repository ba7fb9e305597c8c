"""Whether the masks of a sweep were seen to do something on the machine that measured it; pure, from its facts.

Of several nodes together no more may be said than of the one that shows least.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

VERIFIED, UNVERIFIED = "verified", "unverified"
WORKS = "works"  # the verdict of `castmates doctor --verify-cat` that lets masks be believed
MODELLED = "modelled"
DO_THIS = "`castmates doctor --verify-cat` tests them"
Facts = Mapping[str, Any]


def masks_stamp(
    masked: Collection[str], platforms: Collection[str], machine: Mapping[str, Any]
) -> tuple[str, str] | None:
    """A word and a sentence; None where no partition of the cache was tried, or nothing but a model's."""
    if not masked or set(platforms) == {MODELLED}:
        return None
    record = machine.get("way_masks")
    if not isinstance(record, Mapping):
        return UNVERIFIED, f"Way masks have not been tested on this machine; {DO_THIS}."
    trial = f"{record.get('said', '')} (Tried at {record.get('at', 'an unknown time')}.)".strip()
    if record.get("verdict") == WORKS:
        return VERIFIED, f"Way masks were tested on this machine: {trial}"
    return UNVERIFIED, f"Way masks were tested, with the verdict '{record.get('verdict')}': {trial}"


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
