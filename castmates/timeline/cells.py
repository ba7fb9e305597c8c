"""Columns of a timeline's tables that are made of numbers: words, and whole numbers with gaps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd


def categories(numbers: Any, words: Sequence[str]) -> pd.Categorical:  # noqa: ANN401 (an array of numbers)
    """A column of words by their numbers; equal words may have several."""
    index = pd.Index(pd.unique(np.array(list(words) or [""], dtype=object)), dtype="str")
    places = index.get_indexer(pd.Index(list(words) or [""], dtype="str"))
    return pd.Categorical.from_codes(places[np.asarray(numbers, np.int64)], categories=index)


def or_none(numbers: Any) -> Any:  # noqa: ANN401 (arrays, the second with gaps)
    """Whole numbers, of which -1 is none."""
    return pd.arrays.IntegerArray(numbers.astype(np.int64), numbers < 0)
