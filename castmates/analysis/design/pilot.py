"""A few launches -> how rates vary between launches and between rounds, what each costs, and which design follows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.design.precision import against_alone
from castmates.analysis.keys import LAUNCH, ROUND, ROW
from castmates.study import rounds
from castmates.study.rounds import Cost, Spread
from castmates.study.spec import UNMANAGED, Plan

SETTLED_SHARE = 3  # a window lasts at least so many settle times


def spreads(plan: Plan, windows: pd.DataFrame) -> dict[str, Spread]:
    """By the mix's identity, for all that have two launches with data; the worse of several platforms."""
    contrasts = against_alone(plan)
    contrasts = contrasts[contrasts["partition"] == UNMANAGED]
    pairs = Contrast.of(plan, windows, contrasts).pairs
    names = dict(zip(contrasts["row"], contrasts["mix"], strict=True))
    identities = {mix.name: mix.identity for mix in plan.mixes if not mix.partitions}
    worst: dict[str, Spread] = {}
    for (row, _), own in pairs.groupby(ROW, observed=True):
        spread = spread_of(names[row], [launch["difference"] for _, launch in own.groupby(LAUNCH, observed=True)])
        if spread is not None and (spread.mix not in worst or worst[spread.mix].of_means < spread.of_means):
            worst[spread.mix] = spread
    return {identities[name]: spread for name, spread in worst.items()}


def spread_of(mix: str, differences: Iterable[npt.ArrayLike]) -> Spread | None:
    """From the differences of the pairs, launch by launch; the launches may have different numbers of rounds."""
    launches = [np.asarray(own, dtype=float) for own in differences]
    if len(launches) < 2:
        return None
    freedom = sum(len(own) - 1 for own in launches)
    squares = sum(float(np.sum((own - own.mean()) ** 2)) for own in launches)
    within = squares / freedom if freedom else 0.0
    means = [float(own.mean()) for own in launches]
    shares = float(np.mean([1 / len(own) for own in launches]))
    of_means = float(np.var(means, ddof=1))
    return Spread(
        mix=mix,
        log=float(np.mean(means)),
        of_means=of_means,
        within=within,
        between=max(0.0, of_means - within * shares),
        launches=len(launches),
        rounds=1 / shares,
    )


def best_rounds(mixes: Iterable[Spread], costs: Iterable[Cost], longest_launch: float) -> int:
    """The rounds per launch that give the smallest variance for the time, over these cohorts and mixes at once."""
    mixes, costs = list(mixes), list(costs)
    between, within = sum(each.between for each in mixes), sum(each.within for each in mixes)
    # Mixes of a cohort share their launches, and so count once.
    freedom = len(costs) * min((each.launches - 1 for each in mixes), default=0)
    ratio = rounds.expected_ratio(between, within, freedom)
    total = Cost(sum(each.launch for each in costs), sum(each.round for each in costs))
    return rounds.best_rounds(ratio, total, min(each.fitting(longest_launch) for each in costs))


def cost_of(records: Sequence[Mapping[str, Any]]) -> Cost | None:
    """What the launches of a cohort took, from their records; None where none was measured."""
    took = [
        (record["seconds"]["total"] - record["seconds"]["measure"], record["seconds"]["measure"] / rounds)
        for record in records
        if record["status"] == "measured"
        and (rounds := record["windows"] / len(record.get("scenes") or record["spec"]["cohort"]["scenes"]))
    ]
    if not took:
        return None
    launch, one_round = np.mean(took, axis=0).tolist()
    return Cost(launch, one_round)


def window_noise(windows: pd.DataFrame) -> float | None:
    """Standard deviation of a window's log rate, from the two `alone` windows of each round."""
    usable = windows[windows["valid"] & (windows["role"] == "lead") & (windows["rate"] > 0)]
    place = ["platform", *ROUND, "member"]
    first, again = (usable[usable["scene"] == scene].set_index(place)["rate"] for scene in ("alone", "alone-again"))
    difference = (np.log(first) - np.log(again)).dropna()
    inside = difference.groupby(["platform", *LAUNCH]).agg(["var", "size"])
    freedom = inside["size"] - 1
    if not freedom.sum():
        return None
    return math.sqrt(float((inside["var"].fillna(0.0) * freedom).sum()) / float(freedom.sum()) / 2)


def window_for(windows: pd.DataFrame, steps: int, shortest: float, longest: float, settle: float) -> float:
    """A window in which the slowest lead makes its steps, and that is long beside the settle time."""
    leads = windows[windows["role"] == "lead"]
    counted = leads["slices"] - leads["slices_rejected"] - leads["slices_dropped"]
    steps_inside = (leads["beats"] - counted).astype("float64")  # one fewer than heartbeats in each slice
    seconds = leads["progress_s"] / steps_inside.where(steps_inside > 0)
    slowest = float(seconds.groupby(leads["kind"] + leads["scene"] + leads["member"]).median().max())
    needed = max(shortest, SETTLED_SHARE * settle, (steps + 1) * slowest if math.isfinite(slowest) else 0.0)
    return min(max(longest, shortest), math.ceil(round(10 * needed, 6)) / 10)
