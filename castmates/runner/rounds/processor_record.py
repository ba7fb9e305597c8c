"""What a block's record has of the processor: under which partitions its registers were read, and what they held.

A difference rejects no window: what was measured is what these settings do on this machine. The analysis judges such a
partition by what the processor held.
"""

from collections.abc import Iterable
from typing import Any

from castmates.protocols import Allocator, HeldOtherwise, ReadsProcessor
from castmates.rdt.resctrl.schemata import is_decimal
from castmates.study.spec import UNMANAGED, Scene


def processor_record(allocator: Allocator, scenes: Iterable[Scene]) -> dict[str, Any]:
    """Return how registers were read and, by partition, what differed; nothing where the allocator has none to ask.

    A partition is listed only if they were read under all its shares.
    """
    readings = allocator.processor() if isinstance(allocator, ReadsProcessor) else None
    if readings is None or not readings.how:
        return {}
    scenes_of: dict[str, list[Scene]] = {}
    for scene in scenes:
        if scene.partition != UNMANAGED:
            scenes_of.setdefault(scene.partition, []).append(scene)
    partitions = {
        name: _once(each for scene in own for each in readings.under[scene.shares])
        for name, own in scenes_of.items()
        if all(scene.shares in readings.under for scene in own)
    }
    return {"registers": readings.how, "partitions": partitions}


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
