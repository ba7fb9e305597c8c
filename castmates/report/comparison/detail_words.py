"""What lies below the losses of compared studies, in sentences and short tables: proven differences first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from castmates.analysis.comparison.details import POINTS, PROVEN
from castmates.analysis.effects.verdicts import NO_DIFFERENCE, PLATFORMS_DIFFER
from castmates.report.comparison.compared import Several
from castmates.report.comparison.several_words import verdict_in
from castmates.report.results import records
from castmates.report.text.operations import operation_words
from castmates.report.text.words import Row, interval, listed, number, percent_of, plain
from castmates.study.spec import UNMANAGED

SHOWN = 6  # rows of a section
NAMED = 3  # items that a sentence names
TITLES = {  # of a kind: its heading, and what one of its rows is, and several are
    "counters": ("Counters", "change of a counter", "changes of counters"),
    "phases": ("Phases of a step", "loss of a phase", "losses of phases"),
    "operations": ("Operations", "loss of a group of operations", "losses of groups of operations"),
    "quantiles": ("Step and request times", "change of a quantile", "changes of quantiles"),
}


@dataclass(frozen=True)
class Section:
    """What is shown of one kind."""

    name: str
    title: str
    sentences: list[str]
    rows: list[dict[str, Any]]  # the largest proven differences first
    all: int  # rows of the CSV

    @property
    def file(self) -> str:
        """The CSV with all rows."""
        return detail_file(self.name)


def detail_file(kind: str) -> str:
    """The CSV of a kind."""
    return f"comparison_{kind}.csv"


def sections(several: Several, shown: int = SHOWN) -> list[Section]:
    """One for each kind of which both studies have something in common."""
    return [
        section
        for name, table in several.details.tables.items()
        if (section := _section(name, table, several.margin, shown)) is not None
    ]


def _section(name: str, table: pd.DataFrame, margin: float, shown: int) -> Section | None:
    both = table[table["where"] == "both"]
    if both.empty:
        return None
    proven = both[both["verdict"].isin(PROVEN)]
    # Points and ratios differ in scale: the certainty of a difference orders both.
    order = proven.assign(size=proven["p_value"]).sort_values("size", kind="stable")
    if both["scale"].nunique() == 1:
        points = (both["scale"] == POINTS).all()
        size = proven["difference"].abs() if points else (proven["difference"] - 1).abs()
        order = proven.assign(size=size).sort_values("size", ascending=False, kind="stable")
    rows = [_row(name, row) for row in records(order.head(shown))]
    sentences = [*_summary(name, both, len(proven), margin), *_one_sided(name, table)]
    return Section(name, TITLES[name][0], sentences, rows, len(table))


def _summary(name: str, both: pd.DataFrame, proven: int, margin: float) -> Iterator[str]:
    tests = int(both["p_value"].notna().sum())
    if (both["verdict"] == PLATFORMS_DIFFER).all():
        yield f"{_many(name, len(both))} in both, not compared because their platforms differ."
    elif not tests:
        yield f"{_many(name, len(both))} in both, with too few launches to compare them."
    else:
        same = int((both["verdict"] == NO_DIFFERENCE).sum())
        within = f"; {same} {'differs' if same == 1 else 'differ'} by no more than {percent_of(margin)}" if same else ""
        found = f"{proven} {'is' if proven == 1 else 'are'}" if proven else "none is"
        both_of = "in both" if both["letter"].nunique() == 1 else "that A and another study have"
        yield f"Of {_many(name, tests)} {both_of}, {found} proven to differ (Holm){within}."


def _many(name: str, count: int) -> str:
    _, one, many = TITLES[name]
    return f"{count} {one if count == 1 else many}"


def _one_sided(name: str, table: pd.DataFrame) -> Iterator[str]:
    """Groups of operations that one study alone has; of other kinds the CSV has them."""
    if name != "operations":
        return
    for (letter, where), rows in table[table["where"] != "both"].groupby(["letter", "where"]):
        who = "A" if str(where).endswith("A") else str(letter)
        items = [operation_words(item) for item in dict.fromkeys(rows["item"])]
        more = [f"{len(items) - NAMED} more"] if len(items) > NAMED else []
        yield f"Only in {who}{f' (against {letter})' if who == 'A' else ''}: {listed([*items[:NAMED], *more])}."


def _row(name: str, row: Row) -> dict[str, Any]:
    return {
        **row,
        "who": _who(row),
        "what": operation_words(row["item"]) if name == "operations" else row["item"],
        "said_a": _said(row, "change_a", row["scale"]),
        "said_b": _said(row, "change_b", row["scale"]),
        "said": _said(row, "difference", row["scale"]),
        "verdict": verdict_in(row["verdict"], row["letter"]),
    }


def _who(row: Row) -> str:
    """dlrm beside stream."""
    lead, _, others = str(row["mix"]).partition("+")
    partition = "" if row["partition_a"] == UNMANAGED else f" @{row['partition_a']}"
    beside = f"{lead} beside {plain(others).replace('+', ' + ')}"
    member = plain(row["member"])
    return f"{beside}{partition}" if member in ("", lead) else f"{member} in {beside}{partition}"


def _said(row: Row, name: str, scale: str) -> str:
    digits, unit = (1, " points") if scale == POINTS else (3, "")
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    ends = "" if low != low else f" {interval(low, high, digits)}"
    return f"{number(row[name], digits)}{ends}{unit}"
