"""What members used: rows of the page's table, and a sentence for what was not measured."""

import math
from typing import Any

from castmates.analysis.explanations.counted_metrics import IPC, PER_1000
from castmates.analysis.explanations.resources import BANDWIDTH, LEVEL_1, OCCUPANCY
from castmates.report.results import Results, records
from castmates.report.text.words import interval, listed, number

# Unit of the table -> what the page divides by, what it calls it, and how many decimals it shows.
SHOWN = {
    "bytes": (2**20, "MiB", 2),
    "bytes per second": (1e9, "GB/s", 2),
    "per cent of slots": (1.0, "% of slots", 1),
    "": (1.0, "", 3),
}
Row = dict[str, Any]


def rows(results: Results) -> list[Row]:
    """A row per co-run, member and metric."""
    return [row | _texts(row) for row in records(results.resources)]


def lacking(results: Results) -> str:
    """Which of the metrics no window of this study has; "" where it has all."""
    metrics = set(results.resources["metric"])
    parts = [name for name in (OCCUPANCY, BANDWIDTH, IPC) if name not in metrics]
    parts += [] if any(name.endswith(PER_1000) for name in metrics) else ["cache misses per 1000 instructions"]
    parts += [] if metrics & set(LEVEL_1) else ["level 1 of Top-Down"]
    return f"Not measured here in any co-run and its baseline: {listed(parts)}." if parts else ""


def _texts(row: Row) -> Row:
    size, name, digits = SHOWN[row["unit"]]
    if row["scale"] == "points":
        change, bounds = number(row["change"]), _ends(row["change_low"], row["change_high"], 1)
        words = f"{change} points"
    else:
        bounds = _ends(row["change_low"], row["change_high"], 3)
        words = f"× {number(row['change'], 3)}"
    return {
        "unit_shown": name,
        "value_text": number(row["value"] / size, digits),
        "value_ends": _ends(row["value_low"] / size, row["value_high"] / size, digits),
        "baseline_text": number(row["baseline_value"] / size, digits),
        "baseline_ends": _ends(row["baseline_low"] / size, row["baseline_high"] / size, digits),
        "change_text": words,
        "change_ends": bounds,
    }


def _ends(low: float, high: float, digits: int) -> str:
    return "" if math.isnan(low) else interval(low, high, digits)
