"""Whole numbers in the place of names, so that no names are compared in millions of rows.

Names may be strings or categories, and categories may differ between the parts of a table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Integers = npt.NDArray[np.int64]
LARGEST = 2**62


def coded(table: pd.DataFrame) -> pd.DataFrame:
    """The table with names as categories: each name is then looked at once, however often it is needed."""
    return table.astype({name: "category" for name in table if table[name].dtype.kind == "O"})


def codes_of(values: pd.Series) -> tuple[Integers, pd.Index]:
    """The number of each value, -1 for none, and the values by their numbers."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values.cat.codes, dtype=np.int64), values.cat.categories
    codes, names = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), pd.Index(names)


def codes_in(values: pd.Series, known: Sequence[str] | pd.Index) -> Integers:
    """The place of each value among those that are known, -1 where it is none of them."""
    codes, names = codes_of(values)
    places = pd.Index(known, dtype=object).get_indexer(pd.Index(np.asarray(names, dtype=object)))
    return np.append(places, -1)[codes].astype(np.int64)


def combinations(table: pd.DataFrame, columns: Sequence[str]) -> tuple[Integers, pd.DataFrame]:
    """The number of each row's combination of values, and the combinations, sorted, by their numbers."""
    number, most = np.zeros(len(table), dtype=np.int64), 1
    for name in columns:
        codes, names = codes_of(table[name])
        if most * (len(names) + 1) > LARGEST:
            number, used = pd.factorize(number)
            most = len(used)
        number, most = number * (len(names) + 1) + codes + 1, most * (len(names) + 1)
    number, used = pd.factorize(number)
    first = np.zeros(len(used), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # of equal ones the last one written stays
    distinct = table[list(columns)].iloc[first].reset_index(drop=True)
    categories = [name for name in columns if isinstance(distinct[name].dtype, pd.CategoricalDtype)]
    distinct = distinct.astype(dict.fromkeys(categories, "str")).sort_values(list(columns))  # by name, not by category
    rank = np.zeros(len(used), dtype=np.int64)
    rank[distinct.index.to_numpy()] = np.arange(len(used))
    return rank[number], distinct.reset_index(drop=True)


def changes_in(table: pd.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether any of the columns has another value than in the row above."""
    changed = np.zeros(len(table), dtype=bool)
    changed[:1] = True
    for name in columns:
        values = _plain(table[name])
        changed[1:] |= values[1:] != values[:-1]
    return changed


def _plain(values: pd.Series) -> npt.NDArray[Any]:
    """Numbers that are equal where the values are."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.codes.to_numpy()
    return values.to_numpy() if values.dtype.kind == "i" else pd.factorize(values)[0]
