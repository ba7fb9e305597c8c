"""What members used in their windows, where it was measured: each co-run against its baseline, paired inside rounds.

Cache occupancy and memory bandwidth come from a monitor's readings inside watched slices, instructions per cycle and
misses per 1000 instructions from counted events, and level 1 of Top-Down from its shares of slots.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.system import BASELINES
from castmates.analysis.explanations.counted_metrics import (
    FULLY_COUNTED,
    IPC,
    USABLE,
    Work,
    events_in,
    is_per_unit,
    per_unit,
    usable,
)
from castmates.analysis.statistics.intervals import Floats, ratio
from castmates.analysis.statistics.name_codes import Integers, coded, codes_in
from castmates.analysis.statistics.pairs import planned
from castmates.analysis.statistics.window_places import WINDOW, WindowPlaces
from castmates.analysis.statistics.window_values import (
    Groups,
    Pairs,
    Values,
    by_row,
    estimated,
    held_against,
    per_launch,
)
from castmates.results.columns.block import BLOCK_TABLES
from castmates.results.columns.study import RESOURCES, frame
from castmates.study.spec import Plan
from castmates.study.topdown_tree import of_level

OCCUPANCY, BANDWIDTH = "cache occupancy", "memory bandwidth"
READ = {"llc_occupancy": OCCUPANCY, "mbm_total": BANDWIDTH}  # a monitor's metrics
MONITORS = ("resctrl", "pqos")
LEVEL_1 = of_level(1)
UNITS = {OCCUPANCY: "bytes", BANDWIDTH: "bytes per second"} | dict.fromkeys(LEVEL_1, "per cent of slots")
# Of each table of a block: what is read of it here.
NEEDED = {
    "samples": ["company", "block", "window", "t_ns", "source", "subject", "metric", "value"],
    "slices": ["company", "block", "window", "member", "open_ns", "close_ns", "watched", "reasons"],
    "counters": [
        "company",
        "block",
        "window",
        "member",
        "event",
        "value",
        "status",
        "running",
        "source",
        "phase",
        "platform",
    ],
    "topdown": ["company", "block", "window", "member", "metric", "value", "status", "running", "phase"],
}

# Of these, the columns of names.
NAMES = {
    name: [column for column in columns if BLOCK_TABLES[name][column] == "str"] for name, columns in NEEDED.items()
}

_ASKED = [*WINDOW, "platform", "round", "scene", "role", "open_s", "rate"]  # of windows
_ROW = ["row", "platform"]
SIDES = ("change", "value", "baseline")
Measured = tuple[Integers, Integers, Floats]  # rows of windows, numbers of metrics, values


def resources(plan: Plan, windows: pd.DataFrame, parts: Iterable[Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """A row per co-run, member and metric that has a value in both windows of some round.

    `parts` are the blocks' tables (`NEEDED`), some blocks at a time.
    """
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[contrasts["baseline"].isin(BASELINES)]
    own = planned(windows, plan)
    known = _Used(coded(own.loc[own["valid"], _ASKED]), contrasts)
    for part in parts:
        known.add(part)
    return _finished(plan, known.table(), contrasts)


class _Used:
    """What members used, from some whole launches at a time."""

    def __init__(self, windows: pd.DataFrame, contrasts: pd.DataFrame) -> None:
        """Find once what is compared with what."""
        self._places, self._counted = (WindowPlaces.of(windows, columns) for columns in (WINDOW, (*WINDOW, "platform")))
        self._open, self._close = np.zeros(len(windows), np.int64), np.full(len(windows), -1)  # of watched slices
        self._work = Work.of(windows)
        scene, base, row = held_against(windows, contrasts)
        self._groups = Groups.of(windows[["company", "block", "platform"]].iloc[scene].assign(row=row), _ROW)
        self._pairs = Pairs(scene, base, self._groups.number)
        self._metrics: dict[str, int] = {}  # and their numbers
        self._launches: list[pd.DataFrame] = []

    def add(self, part: Mapping[str, pd.DataFrame]) -> None:
        """Take in some launches."""
        # Only what is known of each launch is kept: the values of all windows would not fit into memory.
        tables = [
            self._read(part["samples"], part["slices"]),
            self._counts(part["counters"]),
            self._slots(part["topdown"]),
        ]
        at, metric = (np.concatenate([table[place] for table in tables]) for place in (0, 1))
        value = np.concatenate([table[2] for table in tables])
        scene, base, group = self._pairs.inside(Values.of(at, metric, value, len(self._metrics)))
        share = np.array([name in LEVEL_1 for name in self._metrics], dtype=bool)
        scene, base = (np.where(share, values, _logs(values)) for values in (scene, base))
        change, numbers = scene - base, np.arange(len(self._metrics))
        sides = {"change": change, "value": scene, "baseline": base}
        self._launches.append(per_launch(sides, group, numbers, self._groups.size))

    def _read(self, samples: pd.DataFrame, slices: pd.DataFrame) -> Measured:
        """The mean of a monitor's readings while the watched slice was open; a member may hold several caches."""
        usable = slices["watched"].to_numpy(dtype=bool) & (slices["reasons"] == "").to_numpy(dtype=bool)
        watched = slices[usable]
        of, known = self._places.find(watched), watched[["open_ns", "close_ns"]].to_numpy(dtype=np.int64)
        self._open[of[of >= 0]], self._close[of[of >= 0]] = known[of >= 0].T
        wanted = samples["metric"].isin(list(READ)) & samples["source"].isin(MONITORS)
        read = samples[wanted.to_numpy(dtype=bool)].rename(columns={"subject": "member"})
        at, times = self._places.find(read), read["t_ns"].to_numpy(dtype=np.int64)
        inside = at >= 0
        inside[inside] = (times[inside] >= self._open[at[inside]]) & (times[inside] <= self._close[at[inside]])
        at, value = at[inside], read["value"].to_numpy(dtype=float)[inside]
        metric = np.array([self._number(name) for name in READ.values()])[codes_in(read["metric"], list(READ))[inside]]
        time, moments = pd.factorize(times[inside])
        look, looks = pd.factorize((at * len(self._metrics) + metric) * max(len(moments), 1) + time)
        lacking = np.bincount(look, weights=np.isnan(value), minlength=len(looks))
        total = np.bincount(look, weights=np.nan_to_num(value), minlength=len(looks))
        whole = lacking == 0  # a cache that was not read leaves the sum unknown
        where = np.asarray(looks, dtype=np.int64)[whole] // max(len(moments), 1)
        return where // len(self._metrics), where % len(self._metrics), total[whole]

    def _counts(self, counts: pd.DataFrame) -> Measured:
        """The ratios of two events."""
        counted = usable(counts)
        at = np.where(counted, self._counted.find(counts), -1)
        values_, names = per_unit(counts, at, events_in(counts, counted), self._work)
        ratios = [place for place, name in enumerate(names) if not is_per_unit(name)]
        values = values_.values[:, ratios]
        there = ~np.isnan(values)
        window, column = np.nonzero(there)
        numbers = np.array([self._number(names[place]) for place in ratios], dtype=np.int64)
        return values_.rows[window], numbers[column], values[there]

    def _slots(self, topdown: pd.DataFrame) -> Measured:
        """The shares of level 1 that were counted for all of a window, in per cent."""
        counted = topdown["status"].isin(USABLE) & topdown["value"].notna() & ~(topdown["running"] < FULLY_COUNTED)
        counted &= (topdown["phase"] == "") & topdown["metric"].isin(LEVEL_1)
        at = self._places.find(topdown)
        here = counted.to_numpy(dtype=bool) & (at >= 0)
        numbers = np.array([self._number(name) for name in LEVEL_1])[codes_in(topdown["metric"], LEVEL_1)]
        return at[here], numbers[here], 100 * topdown["value"].to_numpy(dtype=float)[here]

    def _number(self, metric: str) -> int:
        return self._metrics.setdefault(metric, len(self._metrics))

    def table(self) -> pd.DataFrame:
        """Each side and its interval, on the scale of its change, by row, platform and metric."""
        if not sum(map(len, self._launches)):
            return pd.DataFrame()
        whole = by_row(self._launches, self._groups.launches)
        sides = {name: estimated(whole, name) for name in SIDES}
        metric, row = np.divmod(sides["change"].index.to_numpy(), len(self._groups.rows))
        table = self._groups.rows.iloc[row].set_index(sides["change"].index)
        table["metric"] = np.array(list(self._metrics), dtype=object)[metric]
        table[["blocks", "rounds"]] = sides["change"][["blocks", "rounds"]]
        share = table["metric"].isin(LEVEL_1)
        for name, estimates in sides.items():
            middle = "baseline_value" if name == "baseline" else name
            for column, part in ((middle, "log"), (f"{name}_low", "log_low"), (f"{name}_high", "log_high")):
                table[column] = estimates[part].where(share, ratio(estimates[part]))
        return table.reset_index(drop=True)


def _logs(values: Floats) -> Floats:
    """NaN where there is none."""
    return np.log(np.where(values > 0, values, np.nan))


def _finished(plan: Plan, estimates: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    if estimates.empty:
        return frame([], RESOURCES)
    table = estimates.merge(contrasts.drop_duplicates("row"), on="row")
    order = {name: place for place, name in enumerate([OCCUPANCY, BANDWIDTH, IPC])}
    order |= {name: 100 + place for place, name in enumerate(LEVEL_1)}
    table = table.assign(
        study=plan.study,
        unit=table["metric"].map(UNITS).fillna(""),
        scale=np.where(table["metric"].isin(LEVEL_1), "points", "ratio"),
        place=table["metric"].map(order).fillna(50),
    )
    table = table.sort_values(["row", "platform", "place", "metric"], kind="stable")
    return table[list(RESOURCES)].astype(dict(RESOURCES)).reset_index(drop=True)
