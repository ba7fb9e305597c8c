"""Whether a loss still grows within slices: then they are too short for it, and it is underestimated."""

from dataclasses import dataclass, replace

import pandas as pd

from castmates.analysis.core import Contrast, adjusted
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, columns_of, estimate, gained, more_than_none
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
    of_rows = _of_halves(Contrast.of(plan, windows, contrasts)).by_launch(["row"])
    values = of_rows.groupby(["platform", *LAUNCH], observed=True)["difference"].mean().reset_index()
    found = estimate(values, ["platform"])
    found = found[found["launches"] >= FEWEST_LAUNCHES]
    ends = found[["mean", "low", "high"]].apply(gained).to_numpy().tolist()
    return [
        Growth(platform, int(launches), *own)
        for platform, launches, own in zip(found.index, found["launches"], ends, strict=True)
    ]


def _of_halves(contrast: Contrast) -> Contrast:
    """The same of the ratio of the rates in the halves of slices."""
    return replace(contrast, windows=contrast.windows.assign(rate=contrast.windows["later"]))


def growth_columns(contrast: Contrast, table: pd.DataFrame) -> dict[str, pd.Series]:
    """Of each row of `table`: how much more slices lose in their later halves than in their earlier ones."""
    found = _of_halves(contrast).estimates()
    found = found.reindex(pd.MultiIndex.from_frame(table[ROW])).reset_index()
    growth = columns_of(found, "growth_pct", gained, ends="growth")
    # Only growth is of interest, and every row of a platform is a chance to see some where there is none.
    certain = adjusted(found.assign(p_value=more_than_none(found)), "platform") < LEVEL
    return growth | {"still_growing": certain & (growth["growth_pct"] >= LEAST_PCT)}
