"""Tables that do not fit into memory are analysed some whole launches at a time."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

LAUNCH = ["company", "block"]


def beside(
    parts: pd.DataFrame | Iterable[pd.DataFrame], windows: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Each part (or the one whole table) with the windows of its launches, in their order."""
    if isinstance(parts, pd.DataFrame):
        yield parts, windows
        return
    places = windows.groupby(LAUNCH, sort=False).indices
    for part in parts:
        launches = part[LAUNCH].drop_duplicates().itertuples(index=False, name=None)
        own = [places[launch] for launch in launches if launch in places]
        yield part, windows.iloc[np.sort(np.concatenate(own))] if own else windows[:0]
