"""Since when records of a CPU's buffer were lost: since the last one that came through it before."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Latest:
    """The last record of each CPU, in the order of the file, as it is read piece by piece."""

    def __init__(self) -> None:
        self._before = np.zeros(1, np.int64)  # the latest time by CPU + 1, of the pieces that are done
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, rows: Array, cpus: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, CPUs (-1: unknown) and times."""
        self._parts.append((rows, cpus, times))

    def since(self, rows: Array, cpus: Array) -> Array:
        """When the last record before each of these places was made on the same CPU; 0 where there was none."""
        found = np.where(cpus + 1 < len(self._before), self._before[np.minimum(cpus + 1, len(self._before) - 1)], 0)
        if not self._parts:
            return found
        all_rows, all_cpus, times = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((all_rows, all_cpus))
        keys = (all_cpus[order] + 1) << 32 | all_rows[order]
        places = np.searchsorted(keys, (cpus + 1) << 32 | rows) - 1
        same = (places >= 0) & (all_cpus[order][places] == cpus)
        return np.where(same, times[order][places], found)

    @property
    def least(self) -> int:
        """The time until which every CPU that shows up has records, of the pieces that are done; 0 for none."""
        known = self._before[self._before > 0]
        return int(known.min()) if len(known) else 0

    def end_piece(self) -> None:
        """Go on to the next piece."""
        for _, cpus, times in self._parts:
            if len(cpus) and (most := int(cpus.max()) + 2) > len(self._before):
                self._before = np.append(self._before, np.zeros(min(most, 1 << 20) - len(self._before), np.int64))
            known = cpus + 1 < len(self._before)
            np.maximum.at(self._before, cpus[known] + 1, times[known])
        self._parts.clear()
