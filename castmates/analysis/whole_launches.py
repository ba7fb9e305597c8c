"""Tables that do not fit into memory are analysed some whole launches at a time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

LAUNCH = ["company", "block"]
Places = Mapping[Any, Any]  # the numbers of its rows, by launch


def beside(
    parts: pd.DataFrame | Iterable[pd.DataFrame], windows: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Each part (or the one whole table) with the windows of its launches, in their order."""
    if isinstance(parts, pd.DataFrame):
        yield parts, windows
        return
    places = windows.groupby(LAUNCH, sort=False).indices
    for part in parts:
        yield part, of_launches(windows, places, [part])


def of_launches(windows: pd.DataFrame, places: Places, parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The windows of the launches of these parts, in their order; `places` says where those of each launch lie."""
    told = (part[LAUNCH].drop_duplicates().itertuples(index=False, name=None) for part in parts)
    launches = dict.fromkeys(launch for some in told for launch in some)
    own = [places[launch] for launch in launches if launch in places]
    return windows.iloc[np.sort(np.concatenate(own))] if own else windows[:0]
