"""Which row of a table of windows each row of another table belongs to: one whole number stands for a window."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.keys import WINDOW
from castmates.analysis.statistics.name_codes import Integers, changes_in, codes_in

IN_NONE, BEHIND = -1, -2  # the number of what is in no window; what no row has


@dataclass(frozen=True)
class WindowPlaces:
    """The rows of a table of windows, by the columns that identify a window."""

    columns: Sequence[str]
    known: list[pd.Index | int]  # of each column: its names, or its largest number
    keys: Integers  # sorted
    rows: Integers  # of each key

    @classmethod
    def of(cls, windows: pd.DataFrame, columns: Sequence[str] = WINDOW) -> "WindowPlaces":
        """Number these windows; of two with the same values, the first is taken."""
        known = [_known(windows[name]) for name in columns]
        keys = _keys(windows, columns, known)
        order = np.argsort(keys, kind="stable")
        order = order[keys[order] != IN_NONE]  # a window without a name has no number
        return cls(columns, known, keys[order], order)

    def find(self, table: pd.DataFrame) -> Integers:
        """Of each row, the number of its window's row; -1 where its window is none of these."""
        first = np.flatnonzero(changes_in(table, self.columns))  # the rows of a window mostly follow each other
        keys = _keys(table[list(self.columns)].iloc[first], self.columns, self.known)
        at = np.searchsorted(self.keys, keys)
        places = np.where(np.append(self.keys, BEHIND)[at] == keys, np.append(self.rows, IN_NONE)[at], IN_NONE)
        return np.repeat(places, np.diff(np.append(first, len(table))))


def _known(values: pd.Series) -> pd.Index | int:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        return int(values.max()) if len(values) else 0
    names: pd.Index = pd.Index(np.asarray(values.unique(), dtype=object))
    return names


def _keys(table: pd.DataFrame, columns: Sequence[str], known: Sequence[pd.Index | int]) -> Integers:
    """One number for the values of a row; -1 where one of them is not known."""
    key, unknown = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=bool)
    for name, own in zip(columns, known, strict=True):
        if isinstance(own, int):
            codes, most = table[name].to_numpy(dtype=np.int64), own
        else:
            codes, most = codes_in(table[name], own), len(own)
        unknown |= (codes < 0) | (codes > most)
        key = key * (most + 1) + codes
    return np.where(unknown, IN_NONE, key)
