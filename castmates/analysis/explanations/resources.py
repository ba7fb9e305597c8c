"""What members used in their windows, where it was measured: each co-run against its baseline, paired inside rounds.

Cache occupancy and memory bandwidth come from a monitor's readings inside watched slices, instructions per cycle and
misses per 1000 instructions from counted events, and level 1 of Top-Down from its shares of slots.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.system import ALONE
from castmates.analysis.explanations.counted_metrics import (
    FULLY_COUNTED,
    GHZ,
    IPC,
    USABLE,
    Work,
    events_in,
    is_per_unit,
    per_unit,
    usable,
    with_work,
)
from castmates.analysis.explanations.power import POWER, Power
from castmates.analysis.keys import LAUNCH, PLATFORM_WINDOW, WINDOW
from castmates.analysis.statistics.pairs import planned
from castmates.analysis.statistics.window_values import Compared, Measured, WindowPlaces, coded, codes_in
from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.study import RESOURCES, frame
from castmates.study.counter_keys import of_level
from castmates.study.spec import Plan

OCCUPANCY, BANDWIDTH = "cache occupancy", "memory bandwidth"
READ = {"llc_occupancy": OCCUPANCY, "mbm_total": BANDWIDTH}  # a monitor's metrics
MONITORS = ("resctrl", "pqos")
MEMBER = "member"  # the scope of what is a member's
LEVEL_1 = of_level(1)
UNITS = {OCCUPANCY: "bytes", BANDWIDTH: "bytes per second", GHZ: "GHz"} | dict.fromkeys(LEVEL_1, "per cent of slots")
# Of each table of a launch: what is read of it here.
NEEDED = {
    "samples": [*LAUNCH, "window", "t_ns", "source", "subject", "metric", "value", "note"],
    "slices": [*WINDOW, "open_ns", "close_ns", "watched", "reasons"],
    "counters": [*PLATFORM_WINDOW, "event", "value", "status", "running", "source", "phase", "scope", "note"],
    "topdown": [*WINDOW, "metric", "value", "status", "running", "phase"],
}

# Of these, the columns of names.
NAMES = {
    name: [column for column in columns if LAUNCH_TABLES[name][column] == "str"] for name, columns in NEEDED.items()
}

_ASKED = [*WINDOW, "platform", "round", "scene", "role", "open_s", "rate"]  # of windows


def resources(plan: Plan, windows: pd.DataFrame, readings: Iterable[Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """A row per co-run, member and metric that has a value in both windows of some round.

    `readings` are the launches' tables (`NEEDED`), some launches at a time.
    """
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[contrasts["baseline"] == ALONE]
    own = planned(windows, plan)
    valid = coded(own.loc[own["valid"], with_work(own, _ASKED)])
    known, power = _Used(valid, contrasts), Power(plan, valid)
    for part in readings:
        known.add(part)
        power.add(part)
    tables = [_finished(plan, known.compared.table(), contrasts), _finished(plan, *power.table())]
    return pd.concat(tables, ignore_index=True).astype(dict(RESOURCES))


class _Used:
    """What members used, from some whole launches at a time."""

    def __init__(self, windows: pd.DataFrame, contrasts: pd.DataFrame) -> None:
        """Find once what is compared with what."""
        self._places, self._counted = (WindowPlaces.of(windows, columns) for columns in (WINDOW, PLATFORM_WINDOW))
        self._open, self._close = np.zeros(len(windows), np.int64), np.full(len(windows), -1)  # of watched slices
        self._work = Work.of(windows)
        self.compared = Compared(windows, contrasts, LEVEL_1)

    def add(self, part: Mapping[str, pd.DataFrame]) -> None:
        """Take in some launches."""
        self.compared.add(
            [self._read(part["samples"], part["slices"]), self._counts(part["counters"]), self._slots(part["topdown"])]
        )

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
        metric = self.compared.numbers(READ.values())[codes_in(read["metric"], list(READ))[inside]]
        time, moments = pd.factorize(times[inside])
        metrics = int(metric.max(initial=0)) + 1
        look, looks = pd.factorize((at * metrics + metric) * max(len(moments), 1) + time)
        lacking = np.bincount(look, weights=np.isnan(value), minlength=len(looks))
        total = np.bincount(look, weights=np.nan_to_num(value), minlength=len(looks))
        whole = lacking == 0  # a cache that was not read leaves the sum unknown
        where = np.asarray(looks, dtype=np.int64)[whole] // max(len(moments), 1)
        return where // metrics, where % metrics, total[whole]

    def _counts(self, counts: pd.DataFrame) -> Measured:
        """The ratios of two events."""
        counted = usable(counts)
        at = np.where(counted, self._counted.find(counts), -1)
        values_, names = per_unit(counts, at, events_in(counts, counted), self._work)
        ratios = [place for place, name in enumerate(names) if not is_per_unit(name) and name != GHZ]
        values = values_.values[:, ratios]
        there = ~np.isnan(values)
        window, column = np.nonzero(there)
        numbers = self.compared.numbers(names[place] for place in ratios)
        return values_.rows[window], numbers[column], values[there]

    def _slots(self, topdown: pd.DataFrame) -> Measured:
        """The shares of level 1 that were counted for all of a window, in per cent."""
        counted = topdown["status"].isin(USABLE) & topdown["value"].notna() & ~(topdown["running"] < FULLY_COUNTED)
        counted &= (topdown["phase"] == "") & topdown["metric"].isin(LEVEL_1)
        at = self._places.find(topdown)
        here = counted.to_numpy(dtype=bool) & (at >= 0)
        numbers = self.compared.numbers(LEVEL_1)[codes_in(topdown["metric"], LEVEL_1)]
        return at[here], numbers[here], 100 * topdown["value"].to_numpy(dtype=float)[here]


def _finished(plan: Plan, estimates: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    if estimates.empty:
        return frame([], RESOURCES)
    table = estimates.merge(contrasts.drop_duplicates("row"), on="row")
    kind = table["scene"].str.extract(r"^([a-z-]+)")[0]
    table = table.assign(scene=kind, scope=table.get("scope", MEMBER))
    of_others = table["scope"] != MEMBER
    table.loc[of_others, "member"], table.loc[of_others, "role"] = "", "package"
    order = {name: place for place, name in enumerate([OCCUPANCY, BANDWIDTH, IPC])}
    order |= {name: 100 + place for place, name in enumerate(LEVEL_1)}
    order |= {name: 200 + place for place, name in enumerate(POWER)}
    table = table.assign(
        unit=table["metric"].map(UNITS | POWER).fillna(""),
        place=table["metric"].map(order).fillna(50),
    )
    table = table.sort_values(["row", "platform", "scope", "place", "metric"], kind="stable")
    return declared(table, RESOURCES, plan)
