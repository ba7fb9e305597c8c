"""How much a number of traces changes beside others: an interval between launches, as for the times of operations.

A trace beside others is compared with the one of its launch and round in which the lead is alone, if both are of the
same graph with the same threads.
"""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from castmates.analysis.keys import LEAD, ROUND, SAME_ROUND, SCENE
from castmates.analysis.statistics.intervals import columns_of, estimate
from castmates.study.spec import UNMANAGED

_DIFFERENCE = ["difference", "difference_low", "difference_high"]


def differences(
    values: pd.DataFrame, both: pd.DataFrame, keys: Sequence[str], name: str, absent: float | None = None
) -> pd.DataFrame:
    """By scene and keys: the number beside others less that alone, and its interval.

    `values` has a row per trace and keys, `both` the traces that can be compared (`Traces.compared`). What a trace has
    no row of is `absent`; where that is None, it is left out.
    """
    pairs = both[[*SCENE, *ROUND]]
    if absent is not None:
        every = values[[*LEAD, *keys]].drop_duplicates()
        pairs = pairs.merge(every, on=LEAD)
    how: Literal["inner", "left"] = "inner" if absent is None else "left"
    alone = values[(values["kind"] == "alone") & (values["partition"] == UNMANAGED)]
    alone = alone[[*SAME_ROUND, *keys, name]].rename(columns={name: "alone"})
    beside = values[[*SCENE, *ROUND, *keys, name]].rename(columns={name: "beside"})
    pairs = pairs.merge(beside, how, list(pairs.columns))
    pairs = pairs.merge(alone, how, [*SAME_ROUND, *keys])
    if absent is not None:
        pairs = pairs.fillna({"alone": absent, "beside": absent})
    pairs = pairs.assign(difference=pairs["beside"] - pairs["alone"]).dropna(subset="difference")
    which = [*SCENE, *keys]
    if pairs.empty:
        return pd.DataFrame(columns=_DIFFERENCE, index=pd.MultiIndex.from_arrays([[]] * len(which), names=which))
    return pd.DataFrame(columns_of(estimate(pairs, which), "difference"))
