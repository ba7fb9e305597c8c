"""The rows of a comparison, as terminal and page show them."""

import math
from typing import Any

from castmates.report.comparison.compared import Compared
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss, interval, number


def rows(compared: Compared) -> list[dict[str, Any]]:
    """What both studies have: numbers with their intervals, in words."""
    return [_row(row) for row in records(compared.both)]


def _row(row: Row) -> dict[str, Any]:
    name = row["partition_a"]
    return {
        **row,
        "partition": name if name == row["partition_b"] else f"{name} / {row['partition_b']}",
        "loss_a": as_loss(row["slowdown_a"]),
        "loss_b": as_loss(row["slowdown_b"]),
        "said_a": loss(row, "a"),
        "said_b": loss(row, "b"),
        "said_ratio": with_ends(row, "ratio"),
        "said_rate": with_ends(row, "baseline_rate_ratio"),
        "said_p": "< 0.001" if row["p_holm"] < 0.001 else number(row["p_holm"], 3),
    }


def loss(row: Row, letter: str) -> str:
    """What one side loses in per cent, with its interval where there is one."""
    value, low, high = (as_loss(row[f"slowdown_{letter}{end}"]) for end in ("", "_low", "_high"))
    return number(value) + ("" if math.isnan(low) else f" {interval(low, high)}")


def with_ends(row: Row, name: str) -> str:
    """A ratio with its interval where there is one."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return number(row[name], 3) + ("" if math.isnan(low) else f" {interval(low, high, 3)}")
