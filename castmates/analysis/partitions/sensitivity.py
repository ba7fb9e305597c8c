"""Effects -> how fast a lead is with so many ways, and the knee of that curve with its interval.

The knee is the smallest measured number of ways from which on the lead keeps a share of its rate alone with all ways.
Its interval inverts one-sided t-tests in a fixed order, so that no number of points needs an adjustment:
docs/methodology.md has the argument and its simulated coverage.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.power import loss_pct
from castmates.results.columns.partitions import CURVES, KNEES, SENSITIVITY
from castmates.results.columns.study import frame
from castmates.study import masks
from castmates.study.curves import Cell, Curve, curves, mask_of
from castmates.study.partitions.partitions import curve_names
from castmates.study.spec import Plan

KEPT = 95.0  # per cent of the rate alone
KNOWN, BETWEEN, AT_LEAST, NOT_REACHED = "known", "between", "at least", "not reached"

_CURVE = ["study", "mix", "lead", "antagonists", "member", "curve", "platform", "machine"]


def sensitivity_table(plan: Plan, effects: pd.DataFrame) -> pd.DataFrame:
    """A row per lead and partition that gives it separate ways, as far as it was measured."""
    rows = effects[
        (effects["role"] == "lead")
        & (effects["baseline"] == "alone")
        & effects["lead_ways"].notna()
        & effects["slowdown"].notna()
    ]
    if rows.empty:
        return frame([], SENSITIVITY)
    shared = _shared_ways(plan)
    bytes_of_way = (plan.cache.way_bytes if plan.cache else None) or np.nan
    table = rows.assign(
        curve=rows["partition"].map(curve_names(plan)),
        lead_bytes=rows["lead_ways"].astype("float64") * bytes_of_way,
        shared_ways=pd.array(
            [shared.get(key) for key in zip(rows["mix"], rows["partition"], rows["member"], strict=True)], dtype="Int64"
        ),
        rate_pct=100 / rows["slowdown"],
        rate_low=100 / rows["slowdown_high"],
        rate_high=100 / rows["slowdown_low"],
        within_low=100 / rows["within_high"],
        within_high=100 / rows["within_low"],
    )
    return declared(table, SENSITIVITY)


def _shared_ways(plan: Plan) -> dict[tuple[str, str, str], int]:
    """By mix, partition and lead: how many of the lead's ways I/O fills too."""
    if plan.cache is None:
        return {}
    return {
        (mix.name, partition.name, mix.lead): masks.popcount(mask & plan.cache.shareable)
        for mix in plan.mixes
        for partition in mix.partitions
        for share in partition.shares
        if share.member == mix.lead and (mask := mask_of(share)) is not None
    }


def knees(sensitivity: pd.DataFrame, cache_ways: int | None = None, kept_pct: float = KEPT) -> pd.DataFrame:
    """A row per curve of a sensitivity table.

    From the most ways down, numbers are shown to be enough until one is not; from the fewest up, they are shown to be
    too few until one is not. Either walk goes wrong with a probability of at most 2.5 %: only at the true knee, or at
    the number before it. A lead that is alone has the whole cache as its last point, where it keeps everything.
    """
    if sensitivity.empty:
        return frame([], KNEES)
    points = _with_whole_cache(sensitivity, cache_ways).sort_values([*_CURVE, "lead_ways"], kind="stable")
    points = points.assign(
        below=_so_far(points["rate_high"] < kept_pct, points, down=False),
        enough=_so_far(points["rate_low"] >= kept_pct, points, down=True),
        keeps=_so_far(points["rate_pct"] >= kept_pct, points, down=True),
    )
    ways = points["lead_ways"].astype("float64")
    points = points.assign(
        knee=ways.where(points["keeps"]), knee_low=ways.where(~points["below"]), knee_high=ways.where(points["enough"])
    )
    groups = points.groupby(_CURVE, observed=True, sort=False)
    table = groups[["knee", "knee_low", "knee_high"]].min()
    measured = points[points["launches"] > 0].groupby(_CURVE, observed=True, sort=False)
    table = table.assign(
        fewest_ways=measured["lead_ways"].min(),
        most_ways=measured["lead_ways"].max(),
        points=measured["rate_low"].count(),
        launches=measured["launches"].min(),
        kept_pct=kept_pct,
    ).reset_index()
    few = table["points"] == 0
    table.loc[few, ["knee_low", "knee_high"]] = np.nan
    table["verdict"] = np.select(
        [few, table["knee_low"].isna(), table["knee_high"].isna(), table["knee_low"] == table["knee_high"]],
        [TOO_FEW, NOT_REACHED, AT_LEAST, KNOWN],
        default=BETWEEN,
    )
    return declared(table, KNEES)


def _with_whole_cache(curves: pd.DataFrame, cache_ways: int | None) -> pd.DataFrame:
    """The curves of leads that are alone end at the whole cache: that is the scene they are compared with."""
    alone = curves[curves["antagonists"] == ""].drop_duplicates(_CURVE)
    if cache_ways is None or alone.empty:
        return curves
    whole = alone.assign(lead_ways=cache_ways, rate_pct=100.0, rate_low=100.0, rate_high=100.0, launches=0)
    most = curves.groupby(_CURVE, observed=True)["lead_ways"].max().rename("most").reset_index()
    whole = whole.merge(most, on=_CURVE)
    return pd.concat([curves, whole.loc[whole["most"] < cache_ways, list(curves.columns)]], ignore_index=True)


def _so_far(holds: "pd.Series[bool]", points: pd.DataFrame, down: bool) -> "pd.Series[bool]":
    """Whether it holds at this number of ways and at all that come before it, from the fewest up or the most down."""
    ordered = holds.iloc[::-1] if down else holds
    keys = [points.loc[ordered.index, name] for name in _CURVE]
    return ordered.groupby(keys, observed=True, sort=False).cummin().reindex(points.index).astype(bool)


# Effects -> the curves of an adaptive study: measured cells, and between them interpolated ones with their bounds.
#
# A curve only rises or only falls. The measured values are first made monotone (isotonic regression, weighted by
# launches); between them runs a monotone cubic. What is certain of a cell between two measured ones is only that it
# lies between these: its bound reaches from the lower end of the one's interval to the upper end of the other's.

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
