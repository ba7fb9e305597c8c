"""Windows -> differences between two scenes inside a round, and how many windows there were."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.keys import CELL, LAUNCH, MEMBER, ROUND, ROW
from castmates.errors import CastmatesError
from castmates.study.reasons import ReasonKind
from castmates.study.spec import Plan

Marks = npt.NDArray[np.bool_]

ALONE, TWIN = "alone", "alone-again"  # scenes: the lead runs by itself, twice
_COUNTED = ["valid", "windows", "slices", "lost", "lost_alone", "spoilt"]


def planned(windows: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """The windows of the plan's own launches; those of discarded launches stay out."""
    return windows[are_planned(windows, plan)]


def are_planned(windows: pd.DataFrame, plan: Plan) -> Marks:
    """Which windows are those of the plan's own launches."""
    launches = pd.MultiIndex.from_tuples([(launch.cohort.id, launch.number) for launch in plan.launches], names=LAUNCH)
    found: Marks = pd.MultiIndex.from_frame(windows[LAUNCH]).isin(launches)
    return found


def pair(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """log rate(baseline) - log rate(scene), for every round in which both windows are valid and have a rate.

    The baseline's own logarithm stands beside it, for readers who need the rate and not only the slowdown. `alone` is
    both of its scenes (`whole_alone`), but where these two are compared.
    """
    rates = log_rates(windows)
    scenes = rates.merge(contrasts[["row", *MEMBER]], on=MEMBER)
    apart = contrasts["scene"] == TWIN
    sides = ((whole_alone(rates), contrasts[~apart]), (rates, contrasts[apart]))
    baselines = pd.concat([known.merge(_baseline_side(own), on=MEMBER) for known, own in sides if len(own)] or [scenes])
    place = [*ROW, *ROUND]
    both = scenes[[*place, "log_rate"]].merge(baselines[[*place, "log_rate"]], on=place, suffixes=("", "_baseline"))
    both["difference"] = both["log_rate_baseline"] - both["log_rate"]
    return both[[*place, "difference", "log_rate_baseline"]]


def tally(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """Valid and rejected windows of scene and baseline, and their slices, for every row and platform that has any.

    A window that is rejected for itself (`spoilt`) loses all its slices. One of which too few cycles are left loses its
    own rejected slices alone, because those of other scenes broke the other cycles. `alone` is both of its scenes, but
    where one of these is the scene itself.
    """
    apart = contrasts["scene"].isin([ALONE, TWIN])
    twins = _baseline_side(contrasts[~apart & (contrasts["baseline_scene"] == ALONE)]).assign(scene=TWIN)
    sides = {"": contrasts[["row", *MEMBER]], "baseline_": pd.concat([_baseline_side(contrasts), twins])}
    spoilt = ~windows["valid"] & ~windows["reason_kinds"].str.startswith(ReasonKind.TOO_FEW_CYCLES, na=False)
    lost = windows["slices_rejected"].where(~spoilt, windows["slices"])
    known = windows[["platform", *MEMBER, "valid", "slices"]].assign(
        lost=lost, lost_alone=lost.where(~spoilt, 0), windows=1, spoilt=spoilt
    )
    seen = known.groupby(["platform", *MEMBER], observed=True).sum().astype("int64").reset_index()
    counts = []
    for prefix, side in sides.items():
        own = seen.merge(side, on=MEMBER)
        by_row = own.groupby(ROW, observed=True)[_COUNTED].sum()
        columns = {
            "windows_valid": by_row["valid"],
            "windows_rejected": by_row["windows"] - by_row["valid"],
            "slices_kept": by_row["slices"] - by_row["lost"],
            "slices_lost": by_row["lost"],
            "slices_lost_alone": by_row["lost_alone"],
            "windows_spoilt": by_row["spoilt"],
        }
        counts.append(pd.DataFrame({f"{prefix}{name}": column for name, column in columns.items()}))
    return counts[0].join(counts[1], how="outer").fillna(0).astype("int64")


def _baseline_side(contrasts: pd.DataFrame) -> pd.DataFrame:
    return contrasts[["row", "cohort", "baseline_scene", "member"]].rename(columns={"baseline_scene": "scene"})


def whole_alone(rates: pd.DataFrame) -> pd.DataFrame:
    """The rates of `log_rates`, with one `alone` a round: the mean of both of its scenes, each by how long it was open.

    Weighted like this, it has nothing in common with their difference, which is the A/A control.
    """
    here = rates["scene"].isin([ALONE, TWIN])
    both = rates[here].assign(scene=ALONE)
    if both.empty:
        return rates
    both["log_rate"] *= both["open_s"]
    sums = both.groupby(CELL, observed=True)[["log_rate", "open_s"]].sum().reset_index()
    sums["log_rate"] /= sums["open_s"]
    return pd.concat([rates[~here], sums], ignore_index=True)


def log_rates(windows: pd.DataFrame) -> pd.DataFrame:
    """The windows that are valid and have a rate: their place, how long they were open, and the rate's logarithm."""
    rate = windows["rate"].to_numpy(dtype=float)
    usable = windows["valid"].to_numpy(dtype=bool) & np.isfinite(rate) & (rate > 0)
    rates = pd.DataFrame(windows.loc[usable, [*CELL, "open_s"]]).assign(log_rate=np.log(rate[usable]))
    twice = rates.duplicated(CELL)
    if twice.any():
        first = rates[twice].iloc[0]
        raise CastmatesError(
            f"Launch {first['cohort']}/{first['launch']} has two valid windows of {first['member']} for the scene "
            f"{first['scene']} in round {first['round']}; give every launch once, and measure it again if it was."
        )
    return rates
