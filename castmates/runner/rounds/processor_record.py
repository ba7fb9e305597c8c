"""What a launch's record has of the processor: under which partitions its registers were read, and what they held.

A difference rejects no window: what was measured is what these settings do on this machine. The analysis judges such a
partition by what the processor held.
"""

from collections.abc import Iterable
from typing import Any

from castmates.protocols import Allocator, HeldOtherwise, ReadsProcessor
from castmates.rdt.resctrl.schemata import is_decimal
from castmates.study.schedule import stretches
from castmates.study.spec import UNMANAGED, Launch


def processor_record(allocator: Allocator, launch: Launch) -> dict[str, Any]:
    """Return how registers were read and, by partition, what differed; nothing where the allocator has none to ask.

    A partition is listed only if they were read in every stretch of a round that has scenes under it.
    """
    readings = allocator.processor() if isinstance(allocator, ReadsProcessor) else None
    if readings is None or not (readings.how or readings.lacking or any(readings.shared.values())):
        return {}
    places = [(scene, stretch.shares) for stretch in stretches(launch, 1) for scene in stretch.scenes]
    unread = {scene.partition for scene, shares in places if shares not in readings.under}
    found: dict[str, list[HeldOtherwise]] = {}
    shared: dict[str, dict[str, None]] = {}
    for scene, shares in places:
        if scene.partition != UNMANAGED and readings.shared.get(shares):
            shared.setdefault(scene.partition, {}).update(dict.fromkeys(readings.shared[shares]))
        if scene.partition != UNMANAGED and scene.partition not in unread:
            own = {share.member for share in scene.shares}  # scenes with other shares may be in the same stretch
            rows = found.setdefault(scene.partition, [])
            rows += [each for each in readings.under[shares] if each.member in own]
    return {
        "registers": {"how": readings.how, "lacking": readings.lacking},
        "partitions": {name: _once(rows) for name, rows in found.items()},
        "caches": {name: list(caches) for name, caches in readings.caches.items()},
        "shared": {partition: list(groups) for partition, groups in shared.items()},
    }


def _once(differences: Iterable[HeldOtherwise]) -> list[dict[str, Any]]:
    return [
        {
            "member": each.member,
            "line": each.line,
            "domain": each.domain,
            "asked": _digits(each.line, each.asked),
            "held": _digits(each.line, each.held),
        }
        for each in dict.fromkeys(differences)
    ]


def _digits(line: str, value: int) -> str:
    """Write a value as the kernel does."""
    return str(value) if is_decimal(line) else f"{value:x}"
