"""Effects -> the curves of an adaptive study: measured cells, and between them interpolated ones with their bounds.

A curve only rises or only falls. The measured values are first made monotone (isotonic regression, weighted by
launches); between them runs a monotone cubic. What is certain of a cell between two measured ones is only that it lies
between these: its bound reaches from the lower end of the one's interval to the upper end of the other's.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.power import loss_pct
from castmates.results.columns.partitions import CURVES
from castmates.results.columns.study import frame
from castmates.study.curves import Cell, Curve, curves
from castmates.study.spec import Plan

MEASURED, INTERPOLATED, UNKNOWN = "measured", "interpolated", "unknown"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """The measured cells of a curve, in the order in which values do not rise."""

    amount: Floats
    value: Floats  # log slowdowns
    low: Floats  # of their intervals; NaN where there are none
    high: Floats
    launches: Floats


@dataclass(frozen=True)
class Interpolated:
    """Values between them."""

    value: Floats
    low: Floats  # NaN where a neighbour has no interval
    high: Floats


def interpolate(measured: Measured, amounts: Floats) -> Interpolated:
    """The values at these amounts, all of which lie between measured ones."""
    smooth = monotone(measured.value, measured.launches)
    order = np.argsort(measured.amount)
    x, y = measured.amount[order], smooth[order]
    value = np.interp(amounts, x, y) if len(x) < 3 else _cubic(x, y, amounts)
    below = np.searchsorted(x, amounts, side="right") - 1
    low, high = measured.low[order], measured.high[order]
    ends_low = np.minimum(low[below], low[below + 1])
    ends_high = np.maximum(high[below], high[below + 1])
    # A value lies within what is certain of it, also where neighbours contradict each other.
    return Interpolated(np.clip(value, ends_low, ends_high), ends_low, ends_high)


def monotone(values: Floats, weights: Floats) -> Floats:
    """The closest values that do not rise (weighted least squares)."""
    from scipy.optimize import isotonic_regression  # takes a third of a second to import, which few tables need

    return np.asarray(isotonic_regression(values, weights=weights, increasing=False).x, dtype=float)


def _cubic(x: Floats, y: Floats, at: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(x, y)(at), dtype=float)


def curves_table(plan: Plan, effects: pd.DataFrame) -> pd.DataFrame:
    """A row per cell of each curve, in the order of its amounts; none where a study is not adaptive."""
    if not plan.later:
        return frame([], CURVES)
    rows = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    by_place: dict[tuple[str, str, str], Row] = {
        (str(row["mix"]), str(row["partition"]), str(row["platform"])): {str(key): row[key] for key in row}
        for row in rows.to_dict("records")
    }
    platforms = list(dict.fromkeys(row["platform"] for row in by_place.values() if row["launches"]))
    found = [line for curve in curves(plan.mixes) for platform in platforms for line in _of(curve, by_place, platform)]
    return frame([{"study": plan.study, **line} for line in found], CURVES)


def _of(curve: Curve, by_place: Mapping[tuple[str, str, str], Row], platform: str) -> Iterator[dict[str, Any]]:
    seen = [by_place.get((cell.mix, cell.partition, platform)) for cell in curve.cells]
    measured = [each if each is not None and each["launches"] else None for each in seen]
    known = next((each for each in measured if each is not None), None)
    if known is None:
        return
    values = _between(curve, measured)
    for cell, row, value in sorted(zip(curve.cells, measured, values, strict=True), key=lambda each: each[0].amount):
        yield {name: known[name] for name in ("mix", "lead", "antagonists", "member", "platform", "machine")} | {
            "curve": curve.family,
            "unit": curve.unit,
            "partition": cell.partition,
            "amount": cell.amount,
            **(value if row is None else _measured(row)),
        }


def _measured(row: Row) -> dict[str, Any]:
    return {
        "loss_pct": row["loss_pct"],
        "loss_low": row["loss_low"],
        "loss_high": row["loss_high"],
        "launches": row["launches"],
        "source": MEASURED,
    }


def _between(curve: Curve, measured: list[Row | None]) -> list[dict[str, Any]]:
    """What lies between measured cells; beyond them nothing is known."""
    nothing = {"loss_pct": math.nan, "loss_low": math.nan, "loss_high": math.nan, "launches": 0, "source": UNKNOWN}
    there = [(cell, row) for cell, row in zip(curve.cells, measured, strict=True) if row is not None]
    missing = [cell for cell, row in zip(curve.cells, measured, strict=True) if row is None and _inside(cell, there)]
    if not missing:
        return [nothing for _ in curve.cells]
    known = Measured(
        amount=np.array([cell.amount for cell, _ in there]),
        value=np.log([float(row["slowdown"]) for _, row in there]),
        low=np.log([float(row["slowdown_low"]) for _, row in there]),
        high=np.log([float(row["slowdown_high"]) for _, row in there]),
        launches=np.array([float(row["launches"]) for _, row in there]),
    )
    values = interpolate(known, np.array([cell.amount for cell in missing]))
    logs = zip(values.value, values.low, values.high, strict=True)
    lines = {
        cell.identity: dict(zip(("loss_pct", "loss_low", "loss_high"), map(loss_pct, each), strict=True))
        | {"launches": 0, "source": INTERPOLATED}
        for cell, each in zip(missing, logs, strict=True)
    }
    return [lines.get(cell.identity, nothing) for cell in curve.cells]


def _inside(cell: Cell, there: list[tuple[Cell, Row]]) -> bool:
    amounts = [each.amount for each, _ in there]
    return bool(amounts) and min(amounts) < cell.amount < max(amounts)
