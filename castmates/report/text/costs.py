"""What measuring costs: what each collector does to the lead's rate, pooled over the launches."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from castmates.analysis.design.pilot import costs
from castmates.report.results import Results, records
from castmates.report.text.health import WITHIN
from castmates.report.text.words import Quantity, number

DIGITS = 2


def rows(results: Results) -> list[dict[str, Any]]:
    """The lines of the table: those with pairs first, then those that work at the edges of windows alone."""
    pairs, edges = pairs_of(results), _edges(results)
    lines = [_pooled(row) for row in records(costs(pairs))] if len(pairs) else []
    known = {line["collector"] for line in lines}
    without = sorted({name for record in results.measured_records for name in record.costs} - known - set(edges))
    lines += [_line(name, verdict="no pair of windows counts") for name in without]
    return lines + [
        _line(name, verdict=f"none: {number(1e3 * seconds)} ms for its two reads, outside the window")
        for name, seconds in sorted(edges.items())
    ]


def pairs_of(results: Results) -> pd.DataFrame:
    """Every pair of every launch: the log of the lead's rate with the collector over the rate without it."""
    pairs = [
        {"collector": name, "cohort": record.cohort, "launch": record.number, "difference": log}
        for record in results.measured_records
        for name, cost in record.costs.items()
        for log in cost.logs
    ]
    return pd.DataFrame(pairs, columns=["collector", "cohort", "launch", "difference"])


def _edges(results: Results) -> dict[str, float]:
    """The mean seconds that the two reads of a window take, of those who do nothing in between."""
    seconds: dict[str, list[float]] = {}
    for record in results.measured_records:
        for name, cost in record.costs.items():
            if cost.seconds is not None:
                seconds.setdefault(name, []).append(cost.seconds)
    return {name: math.fsum(reads) / len(reads) for name, reads in seconds.items()}


def _pooled(row: Mapping[str, Any]) -> dict[str, Any]:
    low, high = row["low"], row["high"]
    verdict = {
        "costs": "slower with it",
        "speeds up": "faster with it",
        "none seen": "none seen",
        "too few pairs": "too few pairs",
        "unresolved": f"unresolved at ±{number(max(-low, high))} %",
    }[row["verdict"]]
    ends = Quantity(row["change_pct"], low, high, digits=DIGITS).interval
    marked = ends + ("" if row["between_launches"] else WITHIN) if ends else "–"
    return _line(row["collector"], row["change_pct"], marked, verdict, row["pairs"], row["launches"])


def _line(
    name: str, change_pct: float = math.nan, between: str = "–", verdict: str = "", pairs: int = 0, launches: int = 0
) -> dict[str, Any]:
    return {
        "collector": name, "change_pct": change_pct, "interval": between, "said": verdict, "pairs": pairs,
        "launches": launches,
    }  # fmt: skip
