"""How the step time of each lead goes on within a launch: by iteration, with its warm-up and the changes of its level.

A launch runs through many scenes, and beside others a step takes longer: that is an effect, no change. So each step is
divided by the median of its own scene in that launch before changes are looked for.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, of_counts, of_numbers, of_texts
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.keys import LAUNCH, MIX, WINDOW
from castmates.analysis.statistics import change_points
from castmates.results.columns.contract import Columns

LEAD_LAUNCH = [*LAUNCH, "member"]
MOST_POINTS = 400  # that the search for changes is given of a launch
FEWEST_STEPS = 3  # that make a point
STEADY = 0.01  # a level within one per cent of the launch's second half is steady

# `iteration` counts units since the member's first heartbeat (some jobs do not beat in their warm-up); `seconds` are
# those of a unit, `relative` is over the median of its scene in this launch.
STEPS: Columns = {
    **of_texts("study cohort"),
    **of_counts("launch"),
    **of_texts("member lead"),
    **of_counts("window slice"),
    **of_texts("scene kind mix partition"),
    "valid": "bool",
    **of_counts("iteration t_ns"),
    **of_numbers("seconds relative"),
    **of_texts("platform"),
}


@dataclass(frozen=True)
class Level:
    """A part of a launch in which the step time keeps its level."""

    first: int  # iteration
    last: int
    relative: float  # step time over that of its scene, in the middle


@dataclass(frozen=True)
class Evolution:
    """What is known of one launch."""

    cohort: str
    launch: int
    member: str
    levels: list[Level]  # one where no change was found; none where no change could be looked for
    warm_from: int | None  # the iteration from which on the level is steady; None where that is not known
    note: str = ""

    @property
    def changes(self) -> list[int]:
        """The iterations at which a new level begins."""
        return [level.first for level in self.levels[1:]]

    @property
    def warmed_up(self) -> bool:
        """Whether some of what was measured came before the steady level."""
        return self.warm_from is not None and bool(self.levels) and self.warm_from > self.levels[0].first


def step_times(steps: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """Every step of a lead of which both ends were seen in one slice, in order of time."""
    what = [*WINDOW, "scene", "kind", *MIX, "valid"]
    ours = (windows["role"] == "lead") & windows["cohort"].isin(steps["cohort"].unique())
    leads = windows.loc[ours, what]
    leads = leads.assign(lead=workloads_of(leads["member"]))
    table = steps.merge(leads, on=WINDOW).sort_values([*LEAD_LAUNCH, "t_ns"], ignore_index=True)
    within = table.groupby([*LEAD_LAUNCH, "slice"], sort=False)
    units = within["units"].diff()
    table["seconds"] = within["t_ns"].diff() / 1e9 / units
    table["iteration"] = table["units"]
    table = table[(units > 0) & (table["seconds"] > 0)]
    usual = table.groupby([*LEAD_LAUNCH, "scene"])["seconds"].transform("median")
    return declared(table.assign(relative=table["seconds"] / usual), STEPS)


def evolutions(times: pd.DataFrame) -> list[Evolution]:
    """What is known of every launch; `times` as `step_times` gives them."""
    return [
        _evolution(str(launch["cohort"].iloc[0]), int(launch["launch"].iloc[0]), str(launch["member"].iloc[0]), launch)
        for _, launch in times.groupby(LEAD_LAUNCH, sort=True)
    ]


def points(launch: pd.DataFrame) -> pd.DataFrame:
    """The steps of a launch in bins that never span two slices: iterations, middle, relative step time, slice."""
    size = max(FEWEST_STEPS, -(-len(launch) // MOST_POINTS))
    place = launch.groupby("slice").cumcount()
    last = launch.groupby("slice")["relative"].transform("size") // size - 1
    own = np.minimum(place // size, np.maximum(last, 0))  # what is left over belongs to the slice's last bin
    binned = launch.assign(bin=own).groupby(["slice", "bin"], sort=False)
    bins = binned.agg(first=("iteration", "min"), last=("iteration", "max"), relative=("relative", "median"))
    return bins.reset_index().sort_values("first", ignore_index=True)


def _evolution(cohort: str, launch: int, member: str, steps: pd.DataFrame) -> Evolution:
    if not change_points.available():
        return Evolution(cohort, launch, member, [], None, change_points.MISSING)
    binned = points(steps[steps["valid"]])
    if len(binned) < change_points.FEWEST:
        note = (
            f"too few steps to look for changes: they make {len(binned)} points of the {change_points.FEWEST} it takes"
        )
        return Evolution(cohort, launch, member, [], None, note)
    relative = binned["relative"].to_numpy(dtype=float)
    edges = [0, *change_points.find(relative, binned["slice"].tolist()), len(binned)]
    levels = [
        Level(
            int(binned["first"].iloc[begin]),
            int(binned["last"].iloc[end - 1]),
            float(np.median(relative[begin:end])),
        )
        for begin, end in pairwise(edges)
    ]
    return Evolution(cohort, launch, member, levels, warm_from(levels, relative))


def warm_from(levels: list[Level], relative: change_points.Floats) -> int | None:
    """The first iteration of a level that is as the launch's second half; None where its first half has none."""
    steady = float(np.median(relative[len(relative) // 2 :]))
    halfway = levels[0].first + (levels[-1].last - levels[0].first) / 2
    for level in levels:
        if level.first > halfway:
            return None
        if abs(level.relative / steady - 1) <= STEADY:
            return level.first
    return None
