"""Where a tracer lost events of a CPU: no state is shown there that the lost events may have ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.importers.lines import Ints

Array = npt.NDArray[Any]
Table = Mapping[str, Array]


@dataclass(frozen=True)
class Gaps:
    """Spans in order, none of which overlap."""

    begin: Ints
    end: Ints

    def cut(self, t0: Ints, t1: Ints) -> tuple[npt.NDArray[np.bool_], Ints, Ints]:
        """Which intervals have a gap in them; when the first one begins there, and the last one ends."""
        if not len(self.begin):
            return np.zeros(len(t0), bool), t1, t1
        first = np.searchsorted(self.end, t0, "right")
        last = np.maximum(np.searchsorted(self.begin, t1, "left") - 1, 0)
        place = np.minimum(first, len(self.begin) - 1)
        inside = (first < len(self.begin)) & (self.begin[place] < t1)
        until = np.where(inside, np.maximum(self.begin[place], t0), t1)
        return inside, until, np.where(inside, np.minimum(self.end[last], t1), t1)


def gaps_of(lost: Table, tables: Sequence[Table]) -> dict[int, Gaps]:
    """By CPU: from its last event before each loss until the loss, which is noted once its events go on."""
    found = {}
    for cpu in np.unique(lost["cpu"]).tolist():
        end = np.sort(lost["t"][lost["cpu"] == cpu]).astype(np.int64)
        seen = np.sort(np.concatenate([table["t"][table["cpu"] == cpu] for table in tables])).astype(np.int64)
        place = np.searchsorted(seen, end, "left") - 1
        begin = np.where(place >= 0, seen[np.maximum(place, 0)] if len(seen) else 0, 0)
        found[int(cpu)] = _joined(begin, end)
    return found


def of_all(gaps: Mapping[int, Gaps]) -> Gaps:
    """Those of any CPU."""
    each = list(gaps.values())
    empty = np.empty(0, np.int64)
    return _joined(np.r_[empty, *(one.begin for one in each)], np.r_[empty, *(one.end for one in each)])


def _joined(begin: Ints, end: Ints) -> Gaps:
    order = np.lexsort((end, begin))
    begin, end = begin[order], np.maximum.accumulate(end[order]) if len(end) else end
    starts = np.flatnonzero(np.r_[True, begin[1:] > end[:-1]]) if len(begin) else np.empty(0, np.int64)
    return Gaps(begin[starts], end[np.r_[starts[1:] - 1, len(end) - 1]] if len(starts) else end)
