"""Heartbeats -> how long steps take: per launch, scene and member, a few quantiles of its steps.

A step is what lies between two heartbeats that follow each other in one window; so it lies wholly within the window.
Where a heartbeat covers several units, so does the step. A step that covers another number of units than is usual for
its member there (a record was lost) is the sum of several, and is left out and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.intervals import CONFIDENCE, Floats

COLUMNS = ("company", "block", "window", "member", "t_ns", "units")  # of steps.parquet
PLACE_OF_BEATS = ["company", "block", "window", "member"]
NAMES = ("company", "member")  # of these; they may be categories
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PLACE = ["platform", "company", "block", "scene", "member"]
BITS = 63  # of a whole number without its sign

Integers = npt.NDArray[np.int64]


def fewest_steps(share: float) -> int:
    """The least number of steps of which some two certainly enough (95 %) lie on either side of the quantile."""
    return ceil(log((1 - CONFIDENCE) / 2) / log(max(share, 1 - share)))


@dataclass(frozen=True)
class Launches:
    """Where steps may lie: the valid windows, and the launch, scene and member (a group) that each belongs to."""

    names: tuple[pd.Index, pd.Index]  # of companies and members
    most: tuple[int, int]  # the largest number of a block and of a window
    keys: Integers  # of the windows, sorted
    groups: Integers  # of each of them
    table: pd.DataFrame  # of the groups: PLACE

    @classmethod
    def of(cls, windows: pd.DataFrame) -> "Launches":
        """Find the groups of these windows; rejected ones are in none."""
        valid = windows[windows["valid"]]
        names = pd.Index(valid["company"].unique()), pd.Index(valid["member"].unique())
        most = (int(valid["block"].max()), int(valid["window"].max())) if len(valid) else (0, 0)
        groups = np.asarray(valid.groupby(PLACE, observed=True, sort=False).ngroup(), dtype=np.int64)
        keys = _keys(valid, names, most)
        order = np.argsort(keys, kind="stable")
        return cls(names, most, keys[order], groups[order], valid[PLACE].drop_duplicates().reset_index(drop=True))


def launch_quantiles(steps: pd.DataFrame, launches: Launches, shares: Sequence[float]) -> pd.DataFrame:
    """A row per group that has steps here: `group`, `steps`, `odd`, `units` and each quantile of its steps in ms.

    `steps` has whole blocks, each window's heartbeats of a member in order. Nothing is refused here.
    """
    group, units, length = _steps(steps, launches)
    first, count = (int(group.min()), int(np.ptp(group)) + 1) if len(group) else (0, 0)
    group = group - first
    usual = _usual(units, group, count)
    own = units == usual[group]
    counts, odd = np.bincount(group[own], minlength=count), np.bincount(group[~own], minlength=count)
    found = np.flatnonzero(counts + odd)
    values = quantiles(length[own], group[own], counts, shares)[found] / 1e6
    table = {"group": found + first, "steps": counts[found], "odd": odd[found], "units": usual[found]}
    return pd.DataFrame(table | {str(share): values[:, place] for place, share in enumerate(shares)})


def quantiles(values: Integers, group: Integers, counts: Integers, shares: Sequence[float]) -> Floats:
    """The quantiles of the values of each group, a row per group; NaN where it has none."""
    ordered = _ordered(values, group)
    begins = np.cumsum(counts) - counts
    found = np.full((len(counts), len(shares)), np.nan)
    there = np.flatnonzero(counts)
    for place, share in enumerate(shares):
        at = share * (counts[there] - 1)
        lower = np.floor(at).astype(np.int64)
        upper = np.minimum(lower + 1, counts[there] - 1)
        low, high = ordered[begins[there] + lower], ordered[begins[there] + upper]
        found[there, place] = low + (at - lower) * (high - low)
    return found


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
    """Group, units and nanoseconds of every step that lies in a valid window."""
    changed = changes_in(beats, PLACE_OF_BEATS)
    first = np.flatnonzero(changed)  # of the heartbeats of one member in one window
    keys = _keys(beats.iloc[first], launches.names, launches.most)
    place = np.searchsorted(launches.keys, keys)
    # Behind the last window stands one that nobody has.
    known = np.append(launches.keys, -3)[place] == keys
    sizes = np.diff(np.append(first, len(beats)))
    group = np.repeat(np.where(known, np.append(launches.groups, -1)[place], -1), sizes)[1:]
    inside = ~changed[1:] & (group >= 0)
    units, times = (np.diff(beats[name].to_numpy(dtype=np.int64))[inside] for name in ("units", "t_ns"))
    return group[inside], units, times


def _keys(table: pd.DataFrame, names: tuple[pd.Index, pd.Index], most: tuple[int, int]) -> Integers:
    """One number for a company, block, window and member; -1 for what is in no window."""
    company, member = (_codes(table[name], known) for name, known in zip(NAMES, names, strict=True))
    block, window = (table[name].to_numpy(dtype=np.int64) for name in ("block", "window"))
    whole = ((company * (most[0] + 1) + block) * (most[1] + 1) + window) * len(names[1]) + member
    return np.where((company < 0) | (member < 0) | (block > most[0]) | (window > most[1]), -1, whole)


def _codes(names: pd.Series, known: pd.Index) -> Integers:
    codes, found = pd.factorize(names)
    return known.get_indexer(pd.Index(np.asarray(found, dtype=object))).astype(np.int64)[codes]


def changes_in(table: pd.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether any of the columns has another value than in the row above."""
    changed = np.zeros(len(table), dtype=bool)
    changed[:1] = True
    for name in columns:
        values = _plain(table[name])
        changed[1:] |= values[1:] != values[:-1]
    return changed


def _plain(values: pd.Series) -> npt.NDArray[Any]:
    """Numbers that are equal where the values are: names read as categories have them already."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.codes.to_numpy()
    return values.to_numpy() if values.dtype.kind == "i" else pd.factorize(values)[0]


def _usual(units: Integers, group: Integers, count: int) -> Integers:
    """The units that a step of each group usually covers."""
    usual = np.zeros(count, dtype=np.int64)
    usual[group[::-1]] = units[::-1]  # the first one's, as the last that is written stays
    if (units == usual[group]).all():
        return usual
    middle = quantiles(np.maximum(units, 0), group, np.bincount(group, minlength=count), [0.5])[:, 0]
    return np.floor(np.nan_to_num(middle)).astype(np.int64)
