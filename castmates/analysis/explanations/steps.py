"""Heartbeats -> how long steps take: per launch, scene and member, a few quantiles of its steps.

A step is what lies between two heartbeats that follow each other in one slice; so it lies wholly within it.
Where a heartbeat covers several units, so does the step. A step that covers another number of units than is usual for
its member there (a record was lost) is the sum of several, and is left out and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH, WINDOW
from castmates.analysis.statistics.intervals import CONFIDENCE, Floats
from castmates.analysis.statistics.name_codes import Integers, coded
from castmates.analysis.statistics.window_values import WindowPlaces

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


def launch_quantiles(steps: pd.DataFrame, launches: Launches, shares: Sequence[float]) -> pd.DataFrame:
    """A row per group that has steps here: `group`, `steps`, `odd`, `units` and each quantile of its steps in ms.

    `steps` has whole launches, each slice's heartbeats of a member in order. Nothing is refused here.
    """
    group, units, length = _steps(steps, launches)
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


def _steps(beats: pd.DataFrame, launches: Launches) -> tuple[Integers, Integers, Integers]:
    """Group, units and nanoseconds of every step that lies in a slice of a valid window."""
    at, slices = launches.windows.find(beats), beats["slice"].to_numpy(dtype=np.int64)
    inside = (at[1:] == at[:-1]) & (at[1:] >= 0) & (slices[1:] == slices[:-1])
    units, times = (np.diff(beats[name].to_numpy(dtype=np.int64))[inside] for name in ("units", "t_ns"))
    return launches.groups[at[1:][inside]], units, times


def _usual(units: Integers, group: Integers, count: int) -> Integers:
    """The units that a step of each group usually covers."""
    usual = np.zeros(count, dtype=np.int64)
    usual[group[::-1]] = units[::-1]  # the first one's, as the last that is written stays
    if (units == usual[group]).all():
        return usual
    middle = quantiles(np.maximum(units, 0), group, np.bincount(group, minlength=count), [0.5])[:, 0]
    return np.floor(np.nan_to_num(middle)).astype(np.int64)
