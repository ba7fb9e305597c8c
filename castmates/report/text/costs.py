"""What measuring costs: what each collector does to the lead's rate, pooled over the blocks."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from castmates.analysis.design.costs import costs
from castmates.report.results import Results, records
from castmates.report.text.health import WITHIN
from castmates.report.text.words import interval, number

DIGITS = 2


def rows(results: Results) -> list[dict[str, Any]]:
    """The lines of the table: those with pairs first, then those that work at the edges of windows alone."""
    pairs, edges = pairs_of(results), _edges(results)
    found = [_told(row) for row in records(costs(pairs))] if len(pairs) else []
    known = {row["collector"] for row in found}
    without = sorted({name for _, name, _ in _entries(results)} - known - set(edges))
    found += [_line(name, said="no pair of windows counts") for name in without]
    return found + [
        _line(name, said=f"none: {number(1e3 * seconds)} ms for its two reads, outside the window")
        for name, seconds in sorted(edges.items())
    ]


def pairs_of(results: Results) -> pd.DataFrame:
    """Every pair of every block: the log of the lead's rate with the collector over the rate without it."""
    found = [
        {"collector": name, "company": block["company"]["id"], "block": block["number"], "difference": log}
        for block, name, one in _entries(results)
        for log in one.get("logs") or ()
    ]
    return pd.DataFrame(found, columns=["collector", "company", "block", "difference"])


def _entries(results: Results) -> list[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    """What each block that was measured says of each collector."""
    return [
        (record["spec"], str(name), one)
        for record in results.records
        if record.get("status") == "measured"
        for name, one in (record.get("costs") or {}).items()
    ]


def _edges(results: Results) -> dict[str, float]:
    """The mean seconds that the two reads of a window take, of those who do nothing in between."""
    found: dict[str, list[float]] = {}
    for _, name, one in _entries(results):
        if one.get("seconds") is not None:
            found.setdefault(name, []).append(float(one["seconds"]))
    return {name: math.fsum(seconds) / len(seconds) for name, seconds in found.items()}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    low, high = row["low"], row["high"]
    said = {
        "costs": "slower with it",
        "speeds up": "faster with it",
        "none seen": "none seen",
        "too few pairs": "too few pairs",
        "unresolved": f"unresolved at ±{number(max(-low, high))} %",
    }[row["verdict"]]
    marked = interval(low, high, DIGITS) + ("" if row["between_launches"] else WITHIN)
    return _line(
        row["collector"], row["change_pct"], "–" if math.isnan(low) else marked, said, row["pairs"], row["blocks"]
    )


def _line(
    name: str, change_pct: float = math.nan, between: str = "–", said: str = "", pairs: int = 0, blocks: int = 0
) -> dict[str, Any]:
    return {
        "collector": name, "change_pct": change_pct, "interval": between, "said": said, "pairs": pairs, "blocks": blocks
    }  # fmt: skip
