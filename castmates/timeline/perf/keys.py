"""One number for a group and a time in it, so that many searches in many groups are a single one."""

from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.errors import CastmatesError

Array = npt.NDArray[Any]


class Keys:
    """Puts groups and times into one order."""

    def __init__(self, first: int, last: int, groups: int) -> None:
        self.first = first
        self._bits = max(1, (last - first + 1).bit_length())
        if self._bits + max(1, groups).bit_length() > 62:
            raise CastmatesError("the times in the recording of perf lie years apart: it is damaged; record it again")

    def of(self, groups: Array, times: Array) -> Array:
        """The keys of times in groups; times must lie within the recording."""
        return np.asarray(groups.astype(np.int64) << self._bits | (np.maximum(times, self.first) - self.first))

    def last_before(self, keys: Array, groups: Array, times: Array) -> Array:
        """The place of the last of `keys` in the same group that is not after a time; -1 where there is none."""
        places = np.searchsorted(keys, self.of(groups, times), side="right") - 1
        return self._same_group(keys, places, groups)

    def first_after(self, keys: Array, groups: Array, times: Array) -> Array:
        """The place of the first of `keys` in the same group that is after a time; -1 where there is none."""
        places = np.searchsorted(keys, self.of(groups, times), side="right")
        return self._same_group(keys, np.where(places < len(keys), places, -1), groups)

    def _same_group(self, keys: Array, places: Array, groups: Array) -> Array:
        if not len(keys):
            return np.full(len(places), -1)
        return np.where((places >= 0) & (keys[places] >> self._bits == groups), places, -1)
