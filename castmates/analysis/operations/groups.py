"""Operations put together, so that each group takes enough of a step for its loss to be known.

An operation that takes much of the step stands alone. Smaller ones that differ by numbers alone, such as the lookups of
many tables, are put together; what is then still small is put together by kind and direction, and what is small even
so into one group. What waits, what lies between operations and what belongs to none stay apart: the groups of a trace
add up to its step.
"""

import pandas as pd

from castmates.analysis.explanations.layers import RUNTIME, UNATTRIBUTED
from castmates.analysis.operations.per_trace import OPERATION, WAITING

ALONE, SMALLEST = 0.03, 0.01  # of the step of the lead alone
NAMED = {RUNTIME: "between operations", UNATTRIBUTED: UNATTRIBUTED}
SMALL = "small: "  # before kind and direction
OTHERS = "all others"
INPUT = "input pipeline"
_NUMBERS = r"_?\d+"


def groups(operations: pd.DataFrame, alone: pd.Series) -> pd.DataFrame:
    """By operation: the `group` that it is in; `alone` marks the rows of the lead alone, which decide.

    The rows are those of one lead.
    """
    known, share = _shares(operations, alone)
    group = _apart(known)
    steps = [
        (known["operation"] + ":" + known["type"], ALONE),
        (known["operation"].str.replace(_NUMBERS, "*", regex=True) + ":" + known["type"], SMALLEST),
        (SMALL + known["layer_kind"] + " " + known["direction"], SMALLEST),
    ]
    for name, enough in steps:
        left = group.isna()
        together = share[left].groupby(name[left]).transform("sum")
        large = together.index[together >= enough]
        group.loc[large] = name.loc[large]
    return known.assign(group=_single(known, group.fillna(OTHERS)))


def groups_by_type(operations: pd.DataFrame, alone: pd.Series) -> pd.DataFrame:
    """The same by type and direction alone, which different graphs have in common."""
    known, share = _shares(operations, alone)
    name = _apart(known).fillna((known["type"] + " " + known["direction"]).str.strip())
    small = share.groupby(name).transform("sum") < SMALLEST
    return known.assign(group=name.mask(small & _apart(known).isna(), OTHERS))


def _shares(operations: pd.DataFrame, alone: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """Each operation, and its part of the step of the lead alone."""
    known = operations[OPERATION].drop_duplicates(ignore_index=True)
    taken = operations[alone].groupby(OPERATION)["shared_ms"].sum()
    return known, (taken / taken.sum()).reindex(pd.MultiIndex.from_frame(known)).fillna(0.0).set_axis(known.index)


def _apart(known: pd.DataFrame) -> pd.Series:
    """What is no operation of the model; NA for those."""
    waits = known["layer"].where(known["layer"] == WAITING, INPUT)
    return known["layer_kind"].map(NAMED).astype("object").where(known["direction"] != "input", waits)


def _single(known: pd.DataFrame, group: pd.Series) -> pd.Series:
    """A group of one operation has its name."""
    alone = group.map(group.value_counts()) == 1
    own = known["operation"] + ":" + known["type"]
    return group.where(~(alone & group.str.contains(":", regex=False) & ~group.str.startswith(SMALL)), own)
