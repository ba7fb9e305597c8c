"""A condition on a table -> whether it holds of a lead or a mix, and the row that shows it.

A number with an interval is beyond a threshold only where the whole interval is: where its near end is beyond, that is
proven, and where the point alone is, it is suspected. A number without one is seen to be beyond, and proves nothing; so
is the strongest of several rows, because intervals of 95 % hold for one row and not for the one that looks best.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.timeline.families import why_of
from castmates.study import cpus
from castmates.study.class_names import workload_of
from castmates.study.finding_rules import Cell, Compared, Condition, Word

LEAD, MIX, PLATFORM = "_lead", "_mix", "_platform"
CPUS = "cpus"  # of the row's member: what every table with a member has here besides its own columns
_AND_MORE = "*"
PROVEN, SEEN, SUSPECTED, NOT_SHOWN, NOT_KNOWN = "proven", "seen", "suspected", "not shown", "not known"
STATES = (PROVEN, SEEN, SUSPECTED, NOT_SHOWN, NOT_KNOWN)  # a finding is as sure as its least sure condition
NAN = float("nan")
# Columns that say which row it is; where one of them is there, it is shown.
NAMES = ("scene", "mix", "member", "partition", "baseline", "group", "operation", "type", "direction", "pool", "part",
         "mitigation", "metric", "allocator", "extension", "cohort", "distance")  # fmt: skip


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
    if not cells:
        return table
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


@dataclass(frozen=True)
class Evidence:
    """A number of a table, and its threshold."""

    table: str
    row: Mapping[str, str]  # what names the row
    number: str
    value: float
    low: float  # NaN where it has no interval
    high: float
    threshold: float
    is_above: bool
    shown: str
    state: str
    why: str = ""  # why it has no interval, why that proves nothing, or why nothing is known
    cells: Mapping[str, object] | None = None  # the whole row, for the sentence


@dataclass(frozen=True)
class Subject:
    """Whom a finding is about."""

    lead: str = ""
    mix: str = ""
    platform: str = ""


def looked_at(condition: Condition, table: pd.DataFrame | str | None) -> pd.DataFrame | str:
    """The rows that a condition is about, of whomever; `table` as `with_subjects` returns it. Or why there are none."""
    if table is None or isinstance(table, str):
        return table or f"there is no table {condition.table}"
    if table.empty:
        return f"the table {condition.table} is empty"
    rows = chosen(table, condition.rows)
    for column, cell in condition.without.items():
        rows = rows.drop(chosen(rows, {column: cell}).index)
    return rows


def _of(subject: Subject, rows: pd.DataFrame) -> pd.DataFrame:
    """Those of the subject's mix, and of its lead alone."""
    keep = np.ones(len(rows), dtype=bool)
    for column, name in ((LEAD, subject.lead), (MIX, subject.mix), (PLATFORM, subject.platform)):
        if name:
            keep &= rows[column].isin([name, ""]).to_numpy(dtype=bool)
    return rows[keep]


def judge(condition: Condition, looked: pd.DataFrame | str, subject: Subject) -> Evidence:
    """Whether the condition holds of the subject; `looked` as `looked_at` returns it."""
    if isinstance(looked, str):
        return no_evidence(condition, looked)
    rows = _of(subject, looked)
    if rows.empty:
        return no_evidence(condition, f"the table {condition.table} has no such row")
    # Among how many numbers the strongest is chosen: before `where`, which chooses too; equal ones are one.
    numbers = np.column_stack(_numbers(condition, rows))
    choice = len(np.unique(numbers[~np.isnan(numbers[:, 0])], axis=0, equal_nan=True))
    asked = chosen(rows, condition.where)
    unknown = _unknown(condition, rows)
    if not unknown.empty and (asked.empty or condition.take == "all"):
        return no_evidence(condition, _why_unknown(condition, unknown))
    if condition.take in ("sum", "count"):
        evidence = _together(condition, asked)
    elif asked.empty:
        return no_evidence(condition, f"no such row of {condition.table} has {_asked(condition)}", NOT_SHOWN)
    else:
        evidence = _strongest(condition, asked, choice)
    if evidence.state == NOT_SHOWN and not unknown.empty:
        return no_evidence(condition, _why_unknown(condition, unknown))
    return evidence


def _unknown(condition: Condition, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of which it is not known whether they have what `where` asks: a number in it was not measured.

    Nor is it of rows that all lack the condition's own number, whatever their verdict is.
    """
    compared = {name: cell for name, cell in condition.where.items() if isinstance(cell, Compared)}
    within = chosen(rows, compared)
    if len(within) and np.isnan(_floats(within, condition.number)).all():
        return within
    named = chosen(rows, {name: cell for name, cell in condition.where.items() if name not in compared})
    return named[named[list(compared)].isna().any(axis=1)]


def _why_unknown(condition: Condition, rows: pd.DataFrame) -> str:
    """Why the first of these rows has no number: of its reasons, those of the columns that the condition looks at."""
    compared = (name for name, cell in condition.where.items() if isinstance(cell, Compared))
    reasons = str(_cells(rows, 0).get("not_known") or "")
    return why_of({condition.number, condition.per or "", *compared}, reasons) or "the row has no number"


def no_evidence(condition: Condition, why: str, state: str = NOT_KNOWN) -> Evidence:
    """No number to show, and why."""
    return Evidence(condition.table, {}, condition.number, NAN, NAN, NAN, *_threshold(condition), state, why)


def _asked(condition: Condition) -> str:
    """What `where` asks of a row, in words."""
    return " and ".join(
        f"{name} {f'above {cell.above:g}' if cell.above is not None else f'below {cell.below:g}'}"
        if isinstance(cell, Compared)
        else f"{name} {' or '.join(map(str, cell[:2]))}{' …' if len(cell) > 2 else ''}"
        for name, cell in condition.where.items()
    )


def _threshold(condition: Condition) -> tuple[float, bool, str]:
    is_above = condition.above is not None
    return float(condition.above if condition.above is not None else condition.below or 0.0), is_above, condition.shown


def _together(condition: Condition, rows: pd.DataFrame) -> Evidence:
    """The sum of the rows, or their count: without an interval."""
    values = rows[condition.number].astype("float64")
    value = float(values.sum()) if condition.take == "sum" else float(len(rows))
    threshold, is_above, shown = _threshold(condition)
    beyond = value > threshold if is_above else value < threshold
    if condition.take == "sum" and values.isna().any() and not (beyond and is_above):
        return no_evidence(condition, _why_unknown(condition, rows[values.isna()]))  # what is missing could decide it
    first = _cells(rows, 0) if len(rows) else None
    named = {name: str(cell) for name, cell in (first or {}).items() if name in ("mix", "member")}
    state, why = (SEEN if beyond else NOT_SHOWN), condition.no_interval or ""
    return Evidence(
        condition.table, named, condition.number, value, NAN, NAN, threshold, is_above, shown, state, why, first
    )


def _strongest(condition: Condition, rows: pd.DataFrame, choice: int) -> Evidence:
    """The row that shows it best of a choice of so many; where all rows must show it, the one that shows it least."""
    value, low, high = _numbers(condition, rows)
    threshold, is_above, shown = _threshold(condition)
    sign = 1.0 if is_above else -1.0
    near, beyond = (low if is_above else high), sign * (value - threshold) > 0
    states = np.where(np.isnan(value), NOT_KNOWN, np.where(beyond, SUSPECTED, NOT_SHOWN)).astype(object)
    if condition.interval is None:
        states[beyond] = SEEN
    else:
        is_best_of_many = condition.take == "any" and choice > 1
        proven = SEEN if is_best_of_many else PROVEN
        states[beyond & (sign * (near - threshold) > 0)] = proven  # an end that is NaN is beyond nothing
    far = np.where(np.isnan(near), value, near) * sign
    is_for_all = condition.take == "all"
    ranks = STATES if is_for_all else (*STATES[:-2], NOT_KNOWN, NOT_SHOWN)  # any row without a number could be the one
    order = sorted(range(len(rows)), key=lambda at: (ranks.index(states[at]), -far[at] if far[at] == far[at] else 0.0))
    at = order[-1 if is_for_all else 0]
    cells = _cells(rows, at)
    named = {name: str(cells[name]) for name in NAMES if str(cells.get(name, "")) not in ("", "nan")}
    why = condition.no_interval or ("too few launches for an interval" if math.isnan(near[at]) else "")
    why = _why_unknown(condition, rows.iloc[at : at + 1]) if math.isnan(value[at]) else why
    if states[at] == SEEN and condition.interval is not None:
        why = f"the strongest of {choice} rows, whose intervals are not adjusted for their number"
    return Evidence(
        condition.table,
        named,
        condition.number,
        float(value[at]),
        float(low[at]),
        float(high[at]),
        threshold,
        is_above,
        shown,
        str(states[at]),
        why,
        cells,
    )


def _cells(rows: pd.DataFrame, at: int) -> dict[str, object]:
    return {str(name): cell for name, cell in rows.iloc[at].to_dict().items()}


def _numbers(condition: Condition, rows: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """The number of each row, and the ends of its interval."""
    value = _floats(rows, condition.number)
    with np.errstate(divide="ignore", invalid="ignore"):
        if condition.per:
            value = value / _floats(rows, condition.per)
        if condition.interval is None:
            none = np.full(len(rows), NAN)
            return value, none, none
        low, high = (_floats(rows, end) for end in condition.interval)
    return value, low, high


def _floats(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=float, na_value=NAN)
