"""The stretches of time in which a recording is whole: what was asked, without the ranges in which events were lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.reading import Recording

Array = npt.NDArray[Any]
Span = tuple[int, int]


@dataclass(frozen=True)
class Spans:
    """Stretches in order, none of which overlap."""

    begins: Array
    ends: Array
    whole: Array  # whether every event was already recorded when it began, so that silence means something

    def of(self, times: Array) -> Array:
        """In which stretch each time lies, -1 for none."""
        if not len(self.begins):
            return np.full(len(times), -1)
        places = np.searchsorted(self.begins, times, side="right") - 1
        return np.where((places >= 0) & (times <= self.ends[places]), places, -1)


def spans_of(recording: Recording, asked: Sequence[Span]) -> Spans:
    """The stretches in which nothing was lost; without any that were asked, all that was recorded."""
    wanted = sorted(asked) or [(recording.first_ns, recording.last_ns)]
    found: list[tuple[int, int, bool]] = []
    losses = lost_ranges(recording)
    for begin, end in wanted:
        at, is_whole = begin, bool(asked)
        for lost_from, lost_to in losses:
            if lost_to <= at or lost_from >= end:
                continue
            if lost_from > at:
                found.append((at, lost_from, is_whole))
            at, is_whole = lost_to, True
        if at < end:
            found.append((at, end, is_whole))
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Spans(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(bool))


def lost_ranges(recording: Recording) -> list[Span]:
    """The ranges in which events of any CPU were lost, joined where they overlap."""
    losses = recording.losses
    found: list[Span] = []
    for begin, end in sorted(zip(losses["since"].tolist(), losses["time"].tolist(), strict=True)):
        begin = min(begin or recording.first_ns, end)
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
