"""Writes the phases of each step of a job, and keeps what their medians need; standard library only.

The marks inside a step are read from TensorFlow's clock, which is the wall's; the runner's is CLOCK_MONOTONIC.
"""

import itertools
import statistics
import time
from collections.abc import Sequence

from castmates.workloads.phases import Writer

NAMES = {"train": ("input", "forward", "backward", "optimizer"), "infer": ("input", "forward")}
KEPT = 10_000  # steps that the medians are taken over, at most
TOLERANCE_NS = 1_000_000  # a mark may lie so far outside its step: the clock of the marks has microseconds


class StepPhases:
    """Takes the edges of each step's phases."""

    def __init__(self, mode: str, writer: Writer) -> None:
        self._names = NAMES[mode]
        self._writer = writer
        self._kept: list[tuple[int, ...]] = []
        self.steps = 0
        self.unclear = 0  # steps in which the wall's clock was set, or a mark did not run

    def step(self, edges_ns: Sequence[int]) -> None:
        """Write one step; its edges are times of CLOCK_MONOTONIC, one more than it has phases."""
        number, self.steps = self.steps, self.steps + 1
        pairs = list(itertools.pairwise(edges_ns))
        if len(pairs) != len(self._names) or any(after < before - TOLERANCE_NS for before, after in pairs):
            self.unclear += 1
            self._writer.miss(len(self._names))
            return
        steady = list(itertools.accumulate(edges_ns, max))
        for name, begin, end in zip(self._names, steady, steady[1:], strict=False):
            self._writer.record(name, begin, end, number)
        if len(self._kept) < KEPT:
            self._kept.append(tuple(end - begin for begin, end in itertools.pairwise(steady)))

    def medians_ms(self) -> dict[str, float]:
        """Return in ms how long each phase takes in the middle."""
        columns = zip(*self._kept, strict=True)
        return {
            name: round(statistics.median(column) / 1e6, 3)
            for name, column in zip(self._names, columns, strict=bool(self._kept))
        }


def on_steady_clock(stamps: Sequence[float], now_ns: int | None = None, wall: float | None = None) -> list[int]:
    """Seconds of the wall's clock as times of CLOCK_MONOTONIC, as long as the former is not set meanwhile."""
    now_ns = time.monotonic_ns() if now_ns is None else now_ns
    wall = time.time() if wall is None else wall
    return [now_ns - round(1e9 * (wall - stamp)) for stamp in stamps]
