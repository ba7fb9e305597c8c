"""Whether the masks of a sweep were seen to do something on the machine that measured it; pure, from its facts."""

from collections.abc import Collection, Mapping
from typing import Any

VERIFIED, UNVERIFIED = "verified", "unverified"
WORKS = "works"  # the verdict of `castmates doctor --verify-cat` that lets masks be believed
MODELLED = "modelled"
DO_THIS = "`castmates doctor --verify-cat` tests them"


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
