"""What is written of an imported trace beside its tables, and columns of words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates import __version__
from castmates.timeline.importers.account import Account

IMPORTED = "imported"  # the status of such a trace: nothing of it was recorded here


def record(
    path: Path,
    name: str,
    account: Account,
    clock: str,
    size: int,
    missing: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The record of a trace that another program made."""
    return {
        "format": 1,
        "status": IMPORTED,
        "reason": "",
        "study": "",
        "mix": path.name,
        "partition": "",
        "lead": "",
        "members": {},
        "platform": IMPORTED,
        "imported": {"from": path.name, "by": name, "clock": clock},
        "sources": [account.source(name, size, clock=clock)],
        "clocks": [],
        "missing": list(missing),
        "versions": {"castmates": __version__},
    } | more


def categories(numbers: Any, words: Sequence[str]) -> pd.Categorical:  # noqa: ANN401 (an array of numbers)
    """A column of words by their numbers; equal words may have several."""
    index = pd.Index(pd.unique(np.array(list(words) or [""], dtype=object)), dtype="str")
    places = index.get_indexer(pd.Index(list(words) or [""], dtype="str"))
    return pd.Categorical.from_codes(places[np.asarray(numbers, np.int64)], categories=index)
