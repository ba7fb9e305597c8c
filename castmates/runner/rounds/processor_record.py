"""What a launch's record has of the processor: what its registers held, and whether its cache kept to the masks.

A difference rejects no window: what was measured is what these settings do on this machine. The analysis judges such
a partition by what the processor held, and none isolates whose members filled more ways than it gives them: some
processors fill past a mask (Intel's erratum SKZ18), which only the cache's occupancy shows.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from castmates.protocols import Allocator, HeldOtherwise, ProcessorReadings, ReadsProcessor
from castmates.rdt.resctrl.wanted_schemata import is_decimal
from castmates.runner.rounds.window import Window
from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.schedule import stretches
from castmates.study.spec import UNMANAGED, Launch

MORE, ERROR = 0.5, 0.05  # ways, and a share of a mask's: the unit of occupancy and its error are less
OCCUPANCY = "llc_occupancy"


def processor_record(allocator: Allocator, launch: Launch, windows: Sequence[Window]) -> dict[str, Any]:
    """Return how registers were read and, by partition, what differed; nothing where the allocator has none to ask.

    A partition is listed only if they were read in every stretch of a round that has scenes under it.
    """
    readings = allocator.processor() if isinstance(allocator, ReadsProcessor) else None
    beyond = past_masks(windows, readings) if readings is not None else {}
    if readings is None or not (readings.how or readings.lacking or any(readings.shared.values()) or beyond):
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
    } | ({"beyond": beyond} if beyond else {})


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


def past_masks(windows: Sequence[Window], readings: ProcessorReadings) -> dict[str, dict[str, tuple[float, int]]]:
    """Return by partition and member the ways that were filled and those of the mask, where that is too many."""
    if readings.cache is None or not readings.cache.way_bytes:
        return {}
    seen: dict[tuple[str, str, int], list[float]] = {}
    for window in windows:
        for member, ways, filled in _filled(window, readings.cache, readings):
            seen.setdefault((window.scene.partition, member, ways), []).append(filled)
    found: dict[str, dict[str, tuple[float, int]]] = {}
    for (partition, member, ways), filled_s in seen.items():
        if (filled := median(filled_s)) > ways * (1 + ERROR) + MORE:
            found.setdefault(partition, {})[member] = (round(filled, 1), ways)
    return found


def _filled(window: Window, cache: Cache, readings: ProcessorReadings) -> Iterator[tuple[str, int, float]]:
    """Give each running member's ways in each cache, and how many its data filled, less what may be left of before.

    Without an emptied cache nothing is known: lines stay where a member had more ways before.
    """
    left = window.emptied.left if window.emptied else None
    if left is None or window.reasons or window.scene.partition == UNMANAGED:
        return
    for share in window.scene.shares:
        caches = len(readings.caches.get(share.member, ()))
        read = [
            each.value
            for each in window.watched.samples
            if (each.subject, each.metric) == (share.member, OCCUPANCY) and each.value is not None
        ]
        if share.ways is None or share.member not in window.scene.active or not caches or not read:
            continue
        bytes_of_way = (cache.way_bytes or 0) * cache.clusters * caches
        ways = masks.union([share.ways, share.code or 0]).bit_count()
        yield share.member, ways, median(read) / bytes_of_way - left * cache.ways
