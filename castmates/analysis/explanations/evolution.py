"""How the step time of each lead goes on within a launch: by iteration, with its warm-up and the changes of its level.

A launch runs through many scenes, and beside others a step takes longer: that is an effect, no change. So each step is
divided by the median of its own scene in that launch before changes are looked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, of_counts, of_numbers, of_texts
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.keys import LAUNCH, MIX, WINDOW
from castmates.analysis.statistics import change_points
from castmates.analysis.statistics.intervals import CONFIDENCE, Floats
from castmates.analysis.statistics.window_values import Integers, WindowPlaces, coded
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


# Heartbeats -> how long steps take: per launch, scene and member, a few quantiles of its steps.
#
# A step is what lies between two heartbeats that follow each other in one slice; so it lies wholly within it. Where a
# heartbeat covers several units, so does the step. A step that covers another number of units than is usual for its
# member there (a record was lost) is the sum of several, and is left out and counted.

COLUMNS = (*WINDOW, "t_ns", "units", "slice")  # of steps.parquet
NAMES = ("cohort", "member")  # of these; they may be categories
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PLACE = ["platform", *LAUNCH, "scene", "member"]
BITS = 63  # of a whole number without its sign


def fewest_steps(share: float) -> int:
    """The least number of steps of which some two certainly enough (95 %) lie on either side of the quantile."""
    return ceil(log((1 - CONFIDENCE) / 2) / log(max(share, 1 - share)))


@dataclass(frozen=True)
class Launches:
    """Where steps may lie: the valid windows, and the launch, scene and member (a group) that each belongs to."""

    windows: WindowPlaces
    groups: Integers  # of each of them
    table: pd.DataFrame  # of the groups: PLACE

    @classmethod
    def of(cls, windows: pd.DataFrame) -> "Launches":
        """Find the groups of these windows; rejected ones are in none."""
        valid = windows.loc[windows["valid"], list(dict.fromkeys([*PLACE, *WINDOW]))]
        names = coded(valid)
        # In their order, so that those of a part of the steps lie together.
        groups = np.asarray(names.groupby(PLACE, observed=True, sort=False).ngroup(), dtype=np.int64)
        first = ~names.duplicated(PLACE)
        return cls(WindowPlaces.of(names), groups, valid.loc[first, PLACE].reset_index(drop=True))


def launch_quantiles(steps: pd.DataFrame, launches: Launches, shares: Sequence[float], part: str = "") -> pd.DataFrame:
    """A row per group that has steps here: `group`, `steps`, `odd`, `units` and each quantile of its steps in ms.

    `steps` has whole launches, each slice's heartbeats of a member in order. Nothing is refused here. With `part`, a
    column of seconds, they are quantiles of this part of each step that has it.
    """
    group, units, length = _steps(steps, launches, part)
    first, count = (int(group.min()), int(np.ptp(group)) + 1) if len(group) else (0, 0)
    group = group - first
    usual = _usual(units, group, count)
    own = units == usual[group]
    counts, odd = np.bincount(group[own], minlength=count), np.bincount(group[~own], minlength=count)
    present = np.flatnonzero(counts + odd)
    values = quantiles(length[own], group[own], counts, shares)[present] / 1e6
    table = {"group": present + first, "steps": counts[present], "odd": odd[present], "units": usual[present]}
    return pd.DataFrame(table | {str(share): values[:, place] for place, share in enumerate(shares)})


def quantiles(values: Integers, group: Integers, counts: Integers, shares: Sequence[float]) -> Floats:
    """The quantiles of the values of each group, a row per group; NaN where it has none."""
    ordered = _ordered(values, group)
    begins = np.cumsum(counts) - counts
    table = np.full((len(counts), len(shares)), np.nan)
    there = np.flatnonzero(counts)
    for place, share in enumerate(shares):
        at = share * (counts[there] - 1)
        lower = np.floor(at).astype(np.int64)
        upper = np.minimum(lower + 1, counts[there] - 1)
        low, high = ordered[begins[there] + lower], ordered[begins[there] + upper]
        table[there, place] = low + (at - lower) * (high - low)
    return table


def _ordered(values: Integers, group: Integers) -> Integers:
    """The values by group and size."""
    if not len(values):
        return values
    bits = int(values.max()).bit_length()
    if bits + int(group.max()).bit_length() > BITS:
        return values[np.lexsort((values, group))]
    # Several times as fast: plain integers, with the group in the upper bits.
    return np.sort((group << bits) | values) & ((1 << bits) - 1)


def _steps(beats: pd.DataFrame, launches: Launches, part: str) -> tuple[Integers, Integers, Integers]:
    """Group, units and nanoseconds of every step, or of this part of it, that lies in a slice of a valid window."""
    at, slices = launches.windows.find(beats), beats["slice"].to_numpy(dtype=np.int64)
    inside = (at[1:] == at[:-1]) & (at[1:] >= 0) & (slices[1:] == slices[:-1])
    units, times = (np.diff(beats[name].to_numpy(dtype=np.int64))[inside] for name in ("units", "t_ns"))
    group = launches.groups[at[1:][inside]]
    if not part:
        return group, units, times
    seconds = beats[part].to_numpy(dtype=float)[1:][inside]
    has = seconds > 0
    return group[has], units[has], np.rint(seconds[has] * 1e9).astype(np.int64)


def _usual(units: Integers, group: Integers, count: int) -> Integers:
    """The units that a step of each group usually covers."""
    usual = np.zeros(count, dtype=np.int64)
    usual[group[::-1]] = units[::-1]  # the first one's, as the last that is written stays
    if (units == usual[group]).all():
        return usual
    middle = quantiles(np.maximum(units, 0), group, np.bincount(group, minlength=count), [0.5])[:, 0]
    return np.floor(np.nan_to_num(middle)).astype(np.int64)
