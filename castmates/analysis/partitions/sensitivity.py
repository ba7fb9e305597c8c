"""Effects -> how fast a lead is with so many ways, and the knee of that curve with its interval.

The knee is the smallest measured number of ways from which on the lead keeps a share of its rate alone with all ways.
Its interval inverts one-sided t-tests in a fixed order, so that no number of points needs an adjustment:
docs/methodology.md has the argument and its simulated coverage.
"""

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.results.columns.partitions import KNEES, SENSITIVITY
from castmates.results.columns.study import frame
from castmates.study import masks
from castmates.study.partitions.partitions import curve_names
from castmates.study.schemata import mask_of
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
