"""Numbers of traces -> estimates by scene: a trace is a round of its launch, and launches are the units.

A trace beside others is compared with the one of its launch and round in which the lead is alone, if both are of the
same graph with the same threads.
"""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from castmates.analysis.keys import LEAD, SAME_ROUND, SCENE, SCENE_ROUND
from castmates.analysis.statistics.intervals import columns_of, estimate
from castmates.study.spec import UNMANAGED

_DIFFERENCE = ["difference", "difference_low", "difference_high"]


def lead_alone(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows are of leads alone, without a partition: what those beside others are compared with."""
    return (rows["kind"] == "alone") & (rows["partition"] == UNMANAGED)


def traced_steps(steps: pd.DataFrame) -> "pd.Series[int]":
    """How many steps of each trace were traced."""
    return steps[steps["part"] == "traced"].groupby(SCENE_ROUND).size().rename("steps")


def in_every_trace(
    rows: pd.DataFrame,
    traces: pd.DataFrame,
    what: Sequence[str],
    numbers: Sequence[str],
    things: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A row for each trace of a scene and each thing that any of them has, with zeros where a trace lacks it.

    `numbers` are zero there, and other columns unknown; the `things` are those of `rows`, or named.
    """
    known = rows[[*SCENE, *what]].drop_duplicates() if things is None else things
    whole = known.merge(traces, on=SCENE).merge(rows, "left", [*SCENE_ROUND, *what], suffixes=("", "_of_rows"))
    return whole.fillna(dict.fromkeys(numbers, 0.0))


def longest_first(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows by scene, and in each by what they take."""
    return table.sort_values([*SCENE, column], ascending=[*[True] * len(SCENE), False], ignore_index=True)


def differences(
    values: pd.DataFrame, both: pd.DataFrame, keys: Sequence[str], name: str, absent: float | None = None
) -> pd.DataFrame:
    """By scene and keys: the number beside others less that alone, and its interval.

    `values` has a row per trace and keys, `both` the traces that can be compared (`Traces.compared`). What a trace has
    no row of is `absent`; where that is None, it is left out.
    """
    pairs = both[SCENE_ROUND]
    if absent is not None:
        every = values[[*LEAD, *keys]].drop_duplicates()
        pairs = pairs.merge(every, on=LEAD)
    how: Literal["inner", "left"] = "inner" if absent is None else "left"
    alone = values.loc[lead_alone(values), [*SAME_ROUND, *keys, name]].rename(columns={name: "alone"})
    beside = values[[*SCENE_ROUND, *keys, name]].rename(columns={name: "beside"})
    pairs = pairs.merge(beside, how, list(pairs.columns))
    pairs = pairs.merge(alone, how, [*SAME_ROUND, *keys])
    if absent is not None:
        pairs = pairs.fillna({"alone": absent, "beside": absent})
    pairs = pairs.assign(difference=pairs["beside"] - pairs["alone"]).dropna(subset="difference")
    which = [*SCENE, *keys]
    if pairs.empty:
        return pd.DataFrame(columns=_DIFFERENCE, index=pd.MultiIndex.from_arrays([[]] * len(which), names=which))
    return pd.DataFrame(columns_of(estimate(pairs, which), "difference"))
