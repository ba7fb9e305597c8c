"""Until when a recording has everything, where perf ended by itself: what lay in the buffers of CPUs may be gone.

perf marks each time that it has emptied the buffers of all CPUs. What came later than the last record before the last
mark but one may still have lain in a buffer; what came earlier was read.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FINISHED_ROUND = 68


class Sure:
    """The latest record at each mark, in the order of the file, as it is read piece by piece."""

    def __init__(self) -> None:
        self._latest = 0
        self._marks: list[int] = []  # the last two
        self._parts: list[tuple[Array, Array]] = []

    def add(self, rows: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, and times."""
        self._parts.append((rows, times))

    def end_piece(self, types: Array) -> None:
        """Go on to the next piece; `types` are those of all records of this one."""
        marks = np.flatnonzero(types == FINISHED_ROUND)
        empty = np.empty(0, np.int64)
        rows = np.concatenate([empty, *(rows for rows, _ in self._parts)])
        times = np.concatenate([empty, *(times for _, times in self._parts)])
        order = np.argsort(rows, kind="stable")
        latest = np.maximum.accumulate(np.append(self._latest, times[order]))
        at_marks = latest[np.searchsorted(rows[order], marks)]
        self._marks = [*self._marks, *at_marks[-2:].tolist()][-2:]
        self._latest = int(latest[-1])
        self._parts.clear()

    @property
    def until(self) -> int:
        """The time until which everything was read; 0 where perf has marked too little."""
        return int(self._marks[0]) if len(self._marks) > 1 else 0
