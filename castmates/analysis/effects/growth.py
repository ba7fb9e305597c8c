"""Whether a loss still grows within slices: then they are too short for it, and it is underestimated."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import (
    FEWEST_LAUNCHES,
    columns_of,
    estimate,
    gained,
    holm,
    more_than_none,
    over_launches,
)
from castmates.analysis.statistics.pairs import pair, planned
from castmates.study.spec import Plan

LEVEL = 0.05
LEAST_PCT = 1.0  # of the slowdown: less is no reason for longer slices


@dataclass(frozen=True)
class Growth:
    """How much more the leads of a platform lose in the later halves of slices, all losses against alone together."""

    platform: str
    launches: int
    pct: float  # of the slowdown
    low: float
    high: float

    @property
    def bias(self) -> float:
        """How many points too small a loss may be: a rate over both halves misses half of what they differ by."""
        return max(self.high, 0.0) / 2


def pooled_growth(plan: Plan, windows: pd.DataFrame) -> list[Growth]:
    """The mean over launches, each of which gives one value, the mean over its losses; from three launches on.

    Rows share their launches and `alone` scene, so only launches are independent. Together they show a growth that
    is too small to be seen in any one of them.
    """
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[(contrasts["role"] == "lead") & (contrasts["baseline"] == "alone")]
    halves = planned(windows, plan)
    pairs = pair(halves.assign(rate=halves["later"]), contrasts)
    of_rows = pairs.groupby(["platform", *LAUNCH, "row"], observed=True)["difference"].mean()
    values = of_rows.groupby(level=["platform", *LAUNCH], observed=True).mean().to_frame("value")
    found = over_launches(values.assign(rounds=1, variance=np.nan, successive=np.nan), by=["platform"])
    found = found[found["launches"] >= FEWEST_LAUNCHES]
    ends = found[["mean", "low", "high"]].apply(gained).to_numpy().tolist()
    return [
        Growth(platform, int(launches), *own)
        for platform, launches, own in zip(found.index, found["launches"], ends, strict=True)
    ]


def growth_columns(windows: pd.DataFrame, contrasts: pd.DataFrame, table: pd.DataFrame) -> dict[str, pd.Series]:
    """Of each row of `table`: how much more slices lose in their later halves than in their earlier ones."""
    halves = windows.assign(rate=windows["later"])
    found = estimate(pair(halves, contrasts), by=ROW)
    found = found.reindex(pd.MultiIndex.from_frame(table[ROW])).reset_index()
    growth = columns_of(found, "growth_pct", gained, ends="growth")
    # Only growth is of interest, and every row of a platform is a chance to see some where there is none.
    certain = more_than_none(found).groupby(found["platform"]).transform(holm) < LEVEL
    return growth | {"still_growing": certain & (growth["growth_pct"] >= LEAST_PCT)}
