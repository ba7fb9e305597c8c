"""Operations put together, so that each group takes enough of a step for its loss to be known.

A group is one operation, as long as that takes a hundredth of the step alone. Smaller ones are put together by kind and
direction, and groups that are still smaller into one. What waits, what lies between operations and what belongs to none
stay apart: the groups of a trace add up to its step.
"""

import pandas as pd

from castmates.analysis.explanations.layers import RUNTIME, UNATTRIBUTED
from castmates.analysis.operations.per_trace import OPERATION, WAITING

SMALLEST = 0.01  # of the step of the lead alone
NAMED = {RUNTIME: "between operations", UNATTRIBUTED: UNATTRIBUTED}
OTHERS = "all others"


def groups(operations: pd.DataFrame, solo: pd.Series) -> pd.DataFrame:
    """By operation: the `group` that it is in; `solo` marks the rows of the lead alone, which decide.

    The rows are those of one lead.
    """
    alone = operations[solo]
    known = operations[OPERATION].drop_duplicates(ignore_index=True)
    taken = alone.groupby(OPERATION)["shared_ms"].sum()
    share = (taken / taken.sum()).reindex(pd.MultiIndex.from_frame(known)).fillna(0.0).to_numpy()
    apart = known["layer_kind"].isin(NAMED) | (known["direction"] == "input")
    large = (share >= SMALLEST) | apart
    own = known["operation"] + ":" + known["type"]
    kind = "small: " + known["layer_kind"] + " " + known["direction"]
    group = own.where(large, kind)
    for special, name in NAMED.items():
        group = group.where(known["layer_kind"] != special, name)
    input_ = known["layer"].where(known["layer"] == WAITING, "input pipeline")
    group = group.where(known["direction"] != "input", input_)
    together = pd.Series(share, index=known.index).groupby(group).transform("sum")
    small = (together < SMALLEST) & ~apart
    return known.assign(group=group.where(~small, OTHERS))
