"""Cells of curves that no launch measured: figures show them between measured ones, hollow or hatched."""

import pandas as pd
from matplotlib.typing import LineStyleType

from castmates.analysis.partitions.sensitivity import INTERPOLATED, MEASURED
from castmates.report.results import Results
from castmates.report.text.words import counted
from castmates.study.curves import WAYS
from castmates.study.partitions.partitions import curve_names

DOTS: LineStyleType = (0, (0.6, 1.4))  # of the line that shows a bound
IN_KEY = "hollow with dotted bars: interpolated, with the bound that the measured neighbours give"


def interpolated(results: Results) -> pd.DataFrame:
    """A row per interpolated cell, with the columns of effects that figures read."""
    curves = results.curves
    rows = curves[curves["source"] == INTERPOLATED]
    ways = rows["amount"].where(rows["unit"] == WAYS).astype("Int64")
    return pd.DataFrame(
        {
            **{name: rows[name] for name in ("study", "mix", "lead", "antagonists", "member", "partition", "platform")},
            "lead_ways": ways,
            "role": "lead",
            "baseline": "alone",
            "loss_pct": rows["loss_pct"],
            "loss_low": rows["loss_low"],
            "loss_high": rows["loss_high"],
            "launches": 0,
            "verdict": INTERPOLATED,
            "possibly_biased": False,
            "machine": rows["machine"],
            "source": INTERPOLATED,
        }
    )


def with_interpolated(effects: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The rows of effects, those of interpolated cells among them; a column `source` shows which is which."""
    more = interpolated(results)
    if more.empty:
        return effects
    keys = ["mix", "partition"]
    there = pd.MultiIndex.from_frame(effects[keys]).isin(pd.MultiIndex.from_frame(more[keys]))
    kept = effects[~(there & (effects["launches"] == 0).to_numpy())].assign(source=MEASURED)
    return _in_order(pd.concat([kept, more.reindex(columns=kept.columns)], ignore_index=True), results)


def _in_order(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """In the order of the plan, as effects are."""
    places: dict[tuple[str, str], int] = {}
    for mix in results.plan.mixes:
        for name in [each.name for each in mix.partitions] or ["unmanaged"]:
            places.setdefault((mix.name, name), len(places))
    order = [places.get(key, len(places)) for key in zip(rows["mix"], rows["partition"], strict=True)]
    return rows.assign(_place=order).sort_values("_place", kind="stable").drop(columns="_place").reset_index(drop=True)


def on_sensitivity(points: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The points of sensitivity curves, with the interpolated ones between them."""
    rows = interpolated(results)
    rows = rows[rows["lead_ways"].notna()]
    if rows.empty:
        return points
    more = rows.assign(
        curve=rows["partition"].map(curve_names(results.plan)),
        rate_pct=100 - rows["loss_pct"],
        rate_low=100 - rows["loss_high"],
        rate_high=100 - rows["loss_low"],
        rounds=0,
        held="",
    )
    columns = [*points.columns, "source"]
    return pd.concat([points.assign(source=MEASURED), more.reindex(columns=columns)], ignore_index=True)


def in_caption(rows: pd.DataFrame, mark: str) -> str:
    """That some of these are interpolated, with how the figure marks them; "" where all are measured."""
    return f"{mark}: interpolated, not measured. " if _count(rows) else ""


def read_aloud(rows: pd.DataFrame) -> str:
    """How many of these are interpolated: ranges that are read aloud are of measured cells."""
    if not (count := _count(rows)):
        return ""
    return f" {counted(count, 'more cell')} {'is' if count == 1 else 'are'} interpolated, not measured."


def _count(rows: pd.DataFrame) -> int:
    return int((rows["source"] == INTERPOLATED).sum()) if "source" in rows else 0


def is_interpolated(row: object) -> bool:
    """Whether a row of these is of an interpolated cell."""
    return isinstance(row, dict) and row.get("source") == INTERPOLATED
