"""Everything that members annotated, one by one, as rows of a table: each with the slice that it ended in."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from castmates.runner.processes.launch import Running
from castmates.runner.processes.range_log import RangeLog
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window
from castmates.workloads.phase_records import Range

Row = dict[str, Any]
LONG = ("range", "epoch")  # what may last longer than a window, and is kept where it ends in none
Numbered = tuple[Slice, int]  # a slice, and the number of its window


def are_kept(cast: Sequence[Running]) -> bool:
    """Whether some member was to report ranges."""
    return any(isinstance(process.phases, RangeLog) for process in cast)


def launch_rows(cast: Sequence[Running], windows: Sequence[Window]) -> Iterator[Row]:
    """Yield a row for each range of each member, as far as they fit its limit; how many do not is noted in its log."""
    for process in cast:
        if not isinstance(log := process.phases, RangeLog):
            continue
        numbered = [(window, number) for number, window in enumerate(windows, start=1)]
        own = [(window, number) for window, number in numbered if process.name in window.scene.active]
        slices = [(each, number) for window, number in own for each in window.all_slices]
        slices.sort(key=lambda one: one[0].switch_ns)
        placed = (_placed(one, slices) | {"member": process.name} for one in log.ranges())
        rows = [row for row in placed if row["window"] is not None or row["type"] in LONG]
        kept = share_out([row["window"] for row in rows], log.most)
        log.left_out = len(rows) - sum(kept)
        yield from sorted(
            (row for row, keep in zip(rows, kept, strict=True) if keep), key=lambda row: int(row["begin_ns"])
        )


def share_out(windows: Sequence[object], most: int) -> list[bool]:
    """Which of these rows are kept, so many at most: the first of each window, an equal number of each if it has them.

    Without that, the later windows of a launch would have nothing.
    """
    counts: dict[object, int] = {}
    for window in windows:
        counts[window] = counts.get(window, 0) + 1
    quotas: dict[object, int] = {}
    left = most
    for place, (window, count) in enumerate(sorted(counts.items(), key=lambda one: one[1])):
        quotas[window] = min(count, left // (len(counts) - place))
        left -= quotas[window]
    kept = []
    for window in windows:
        quotas[window] -= 1
        kept.append(quotas[window] >= 0)
    return kept


def columns_of(one: Range) -> Row:
    """What every table has of a range."""
    return {
        "type": one.type,
        "name": one.name,
        "path": one.path,
        "depth": one.depth,
        "domain": one.domain,
        "thread": one.thread,
        "end_thread": one.end_thread,
        "begin_ns": one.begin_ns,
        "end_ns": one.end_ns,
        "step": one.step,
        "epoch": one.epoch,
        "payload": one.payload,
    }


def _placed(one: Range, slices: Sequence[Numbered]) -> Row:
    """A range with the slice that it ended in, from the switch of its scene to its close."""
    place = bisect_left(slices, one.end_ns, key=lambda each: each[0].switch_ns) - 1
    row: Row = columns_of(one) | {"window": None, "slice": None, "scene": "", "whole": False}
    if place < 0 or one.end_ns > slices[place][0].close_ns:
        return row
    found, window = slices[place]
    whole = one.begin_ns >= found.switch_ns
    return row | {"window": window, "slice": found.number, "scene": found.scene.name, "whole": whole}
