"""How deep intervals of one track and kind lie in each other, and which of them cross."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def depths(begin: Ints, end: Ints) -> tuple[Ints, Flags]:
    """By interval, in the order of begins with longer ones first: in how many it lies, and whether it crosses one.

    What crosses lies in nothing, and nothing is taken to lie in it.
    """
    found, crosses = np.zeros(len(begin), np.int64), np.zeros(len(begin), bool)
    open_ends: list[int] = []
    for place, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        while open_ends and open_ends[-1] <= first:
            open_ends.pop()
        if open_ends and last > open_ends[-1]:
            crosses[place] = True
            continue
        found[place] = len(open_ends)
        open_ends.append(last)
    return found, crosses


def in_order(begin: Ints, end: Ints) -> npt.NDArray[np.intp]:
    """The order that `depths` wants."""
    return np.lexsort((-end, begin))
