"""What the tables of a paper have in common: who stands beside whom, ends of intervals, marks, and where it is from."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from castmates.report.results import Results
from castmates.report.text.stamps import first_words, stamped
from castmates.report.text.words import interval, listed, plain
from castmates.study.wanted import BETWEEN as PLACED

WITHIN, BIASED = "†", "‡"
BETWEEN = "Intervals are 95 % t intervals between launches; n is the number of launches"
FEW = "within these launches only, of which there are fewer than three"
Row = Mapping[str, Any]


def source(results: Results) -> str:
    """The end of every caption: platform and stamps."""
    platforms = listed(results.platforms) if results.platforms else "no numbers"
    return f"{first_words(results)}Platform: {platforms}. {stamped(results)}"


def beside(row: Row) -> str:
    """Of a lead its antagonists; of an antagonist all others of its mix."""
    if row["role"] == "lead":
        return plain(str(row["antagonists"])).replace("+", ", ")
    others = [row["lead"], *str(row["antagonists"]).partition(PLACED)[0].split("+")]
    others.remove(plain(row["member"]))
    return ", ".join(others)


def ends(low: float, high: float, digits: int = 1) -> str:
    """An interval, or a dash where there is none."""
    return "–" if math.isnan(low) else interval(low, high, digits)


def flag(row: Row) -> str:
    """The mark of a number that may be biased."""
    return BIASED if row["possibly_biased"] else ""


def flagged(rows: Iterable[Row]) -> str:
    """What the mark means, where a row has it."""
    if not any(row["possibly_biased"] for row in rows):
        return ""
    return f"; {BIASED} possibly biased: its windows were rejected more often than its baseline's"


def file_name(kind: str, mix: str) -> str:
    """The file of one mix's table."""
    return f"{kind}-{mix.replace('+', '-')}.tex"
