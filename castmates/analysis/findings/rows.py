"""The rows of a table that a condition is about, and whom each of them is about."""

import re
from collections.abc import Mapping

import pandas as pd

from castmates.study import cpus
from castmates.study.class_names import workload_of
from castmates.study.finding_rules import Cell, Compared, Word

LEAD, MIX, PLATFORM = "_lead", "_mix", "_platform"
CPUS = "cpus"  # of the row's member: what every table with a member has here besides its own columns
_AND_MORE = "*"


def with_subjects(table: pd.DataFrame) -> pd.DataFrame:
    """The table with whom each row is about, and how many CPUs its member has; "" where that is nobody."""
    empty = pd.Series("", index=table.index)
    known = "member" in table
    lead = table["lead"] if "lead" in table else table["member"].map(workload_of) if known else empty
    mix, platform = table.get("mix", empty), table.get("platform", empty)
    table = table.assign(**{LEAD: lead, MIX: mix.fillna(""), PLATFORM: platform.fillna("")})
    return table.assign(**{CPUS: table["member"].map(cpus_of)}) if known else table


def cpus_of(member: str) -> float:
    """`dlrm@0-3.8` has five CPUs; NaN where a name does not show it."""
    where = member.rpartition("@")[2].partition("#")[0]
    if not re.fullmatch(r"\d+(-\d+)?(\.\d+(-\d+)?)*", where):
        return float("nan")
    return float(len(cpus.parse(where.replace(".", ","), member)))


def chosen(table: pd.DataFrame, cells: Mapping[str, Cell]) -> pd.DataFrame:
    """The rows in which every named column has what is asked of it."""
    keep = pd.Series(data=True, index=table.index)
    for column, cell in cells.items():
        keep &= _bounded(table[column], cell) if isinstance(cell, Compared) else _one_of(table[column], cell)
    return table[keep]


def _bounded(values: pd.Series, bound: Compared) -> "pd.Series[bool]":
    numbers = values.astype("float64")
    if bound.above is not None:
        return numbers > bound.above
    return numbers < (bound.below or 0.0)


def _one_of(values: pd.Series, words: tuple[Word, ...]) -> "pd.Series[bool]":
    patterns = [word for word in words if isinstance(word, str) and _AND_MORE in word]
    plain = [word for word in words if word not in patterns]
    keep = values.isin(plain)
    if patterns:
        any_of = "|".join(".*".join(map(re.escape, word.split(_AND_MORE))) for word in patterns)
        keep |= values.astype("str").str.fullmatch(any_of)
    return keep
