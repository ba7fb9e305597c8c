"""What power did in windows, where it was measured: clocks of members, and what belongs to whole packages.

The evidence for the part `busy antagonist` of a loss: each co-run against its baselines, and the placebos that stand
for a busy antagonist against alone. What belongs to a package (energy, memory controllers, uncore clock) is whatever
went on there in the window, other programs included; its values stand beside the lead's windows not a member's.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.explanations.counted_metrics import CYCLES, GHZ, TASK_CLOCK, Work, per_unit, usable
from castmates.analysis.keys import LAUNCH, PLATFORM_WINDOW, WINDOW
from castmates.analysis.statistics.window_values import Compared, Integers, Measured, WindowPlaces
from castmates.study.spec import UNMANAGED, Plan

CPU_CLOCK, AT_EDGES = "GHz of its CPUs while running", "GHz of its CPUs at the edges"
THROTTLED, LIMITED = "core throttle events", "core power limit events"
PACKAGE_POWER, MEMORY_POWER, UNCORE = "package power", "memory power", "uncore clock"
ENERGY = "package energy per unit of progress"  # of the lead
PACKAGE_THROTTLED, PACKAGE_LIMITED = "package throttle events", "package power limit events"
CONTROLLERS, FOREIGN, SEEN_BY_MBM = "memory controllers", "foreign traffic", "MBM over memory controllers"
WITHOUT_ID = "traffic without an id"
GPU_USED, GPU_MEMORY, GPU_POWER = "GPU utilisation", "GPU memory taken", "GPU power"
GPU_CLOCK, GPU_MEMORY_CLOCK, GPU_HELD_DOWN = "GPU clock", "GPU memory clock", "GPU clock held down"
# Every metric of this table, in its order, with its unit.
POWER = {
    GHZ: "GHz",
    CPU_CLOCK: "GHz",
    AT_EDGES: "GHz",
    THROTTLED: "per second",
    LIMITED: "per second",
    PACKAGE_POWER: "W",
    MEMORY_POWER: "W",
    ENERGY: "J",
    UNCORE: "GHz",
    PACKAGE_THROTTLED: "per second",
    PACKAGE_LIMITED: "per second",
    CONTROLLERS: "bytes per second",
    FOREIGN: "bytes per second",
    SEEN_BY_MBM: "",
    WITHOUT_ID: "bytes per second",
    GPU_USED: "per cent",
    GPU_MEMORY: "bytes",
    GPU_POWER: "W",
    GPU_CLOCK: "GHz",
    GPU_MEMORY_CLOCK: "GHz",
    GPU_HELD_DOWN: "per cent",
}
OF_GPUS = (GPU_USED, GPU_MEMORY, GPU_POWER, GPU_CLOCK, GPU_MEMORY_CLOCK, GPU_HELD_DOWN)
SHARES = (GPU_USED, GPU_HELD_DOWN)  # may be none: their change is a difference
DIFFERENCES = (*SHARES, WITHOUT_ID)  # which may be below none where the two count write-backs differently
EVENTS = (THROTTLED, LIMITED, PACKAGE_THROTTLED, PACKAGE_LIMITED)  # mostly none: their change is a difference
BASELINES = ("alone", "placebo")
PACKAGES = "packages"  # the scope of what is known of all of the launch's packages together
# A collector's metrics -> ours.
_OF_CPUS = {"core_throttles": THROTTLED, "core_power_limits": LIMITED}
_OF_PACKAGES = {
    "package_w": PACKAGE_POWER,
    "memory_w": MEMORY_POWER,
    "uncore_ghz": UNCORE,
    "package_throttles": PACKAGE_THROTTLED,
    "package_power_limits": PACKAGE_LIMITED,
    "memory_read": CONTROLLERS,
    "memory_written": CONTROLLERS,
    "memory_moved": CONTROLLERS,
}
_OF_GPUS = {
    "gpu_utilisation": GPU_USED,
    "gpu_memory": GPU_MEMORY,
    "gpu_mean_w": GPU_POWER,
    "gpu_sm_ghz": GPU_CLOCK,
    "gpu_memory_ghz": GPU_MEMORY_CLOCK,
    "gpu_held_down": GPU_HELD_DOWN,
}
_DIRECTIONS = ("memory_read", "memory_written")
_BUSY, _RUNNING, _MBM, _FOREIGN = "busy_ghz", "unhalted_s", "mbm_total", "foreign_traffic"
_MHZ, SHOWN_BY_DRIVER = "frequency_mhz", "scaling_cur_freq"  # elsewhere it is the nominal one
COLLECTORS = ("package", "throttling", "busy_clock", "frequency", "gpu")  # that read what only this table shows
SOURCES = (*COLLECTORS, "foreign traffic", "resctrl", "pqos")
_ALONE = (_BUSY, _RUNNING, _FOREIGN, _MHZ)  # what counts without another reading
_KEY = [*LAUNCH, "window"]
_BETWEEN = "\n"  # a scope and a metric, in the name by which values are compared


class Power:
    """What is known of clocks and packages, from some whole launches at a time."""

    def __init__(self, plan: Plan, windows: pd.DataFrame) -> None:
        """Find once what is compared with what; `windows` are the valid ones."""
        self._contrasts = _contrasts(plan)
        self._compared = Compared(windows, self._contrasts, _Additive(), list(POWER))
        self._leads = np.flatnonzero((windows["role"] == "lead").to_numpy(dtype=bool))
        self._lead = WindowPlaces.of(windows.iloc[self._leads], _KEY)
        self._member, self._counted = (WindowPlaces.of(windows, columns) for columns in (WINDOW, PLATFORM_WINDOW))
        self._work = Work.of(windows)
        self._active = windows.astype({"cohort": object}).groupby(_KEY).size()  # members in each window
        cpus = [
            {"cohort": cohort.id, "subject": f"cpu{cpu}", "member": member.name}
            for cohort in plan.cohorts
            for member in cohort.members
            for cpu in member.cpus
        ]
        self._on = pd.DataFrame(cpus, columns=["cohort", "subject", "member"])

    def add(self, part: Mapping[str, pd.DataFrame]) -> None:
        """Take in some launches."""
        samples = _of_use(part["samples"])
        names = ["cohort", "source", "subject", "metric"]
        samples = samples.astype(dict.fromkeys(names, object))
        watched, of_packages = _watched(part["slices"]), _of_packages(samples)
        self._compared.add(
            [
                self._clocks(part["counters"]),
                self._of_members(_per_second(_of_cpus(samples.merge(self._on, on=["cohort", "subject"])), watched)),
                self._of_packages(_per_second(of_packages, watched)),
                self._energy(of_packages),
                self._of_packages(_of_all(samples, watched, self._active)),
                self._of_packages(_of_gpus(samples)),
            ]
        )

    def table(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the estimates, with the scope of each, and the contrasts that they belong to."""
        table = self._compared.table()
        if not table.empty:
            parts = [name.rpartition(_BETWEEN) for name in table["metric"]]
            table = table.assign(scope=[part[0] or "member" for part in parts], metric=[part[2] for part in parts])
        return table, self._contrasts

    def _clocks(self, counts: pd.DataFrame) -> Measured:
        """Cycles over the time on a CPU."""
        events = [CYCLES, TASK_CLOCK]
        of_clock = counts[counts["event"].isin(events).to_numpy(dtype=bool)]
        at = np.where(usable(of_clock), self._counted.find(of_clock), -1)
        values, names = per_unit(of_clock, at, events, self._work)
        ghz = values.values[:, names.index(GHZ)]
        there = ~np.isnan(ghz)
        return values.rows[there], np.full(int(there.sum()), self._compared.number(GHZ)), ghz[there]

    def _of_members(self, table: pd.DataFrame) -> Measured:
        return self._measured(self._member.find(table[WINDOW]), table)

    def _of_packages(self, table: pd.DataFrame) -> Measured:
        at = self._lead.find(table[_KEY])
        return self._measured(np.where(at >= 0, np.append(self._leads, -1)[at], -1), table)

    def _energy(self, table: pd.DataFrame) -> Measured:
        """Watts of all the launch's packages over the lead's rate: antagonists, idle cores and others are in them."""
        watts = _known(table[table["metric"].str.endswith(f"{_BETWEEN}{PACKAGE_POWER}")], _KEY).dropna()
        at, metric, values = self._of_packages(
            watts.rename("value").reset_index().assign(metric=f"{PACKAGES}{_BETWEEN}{ENERGY}")
        )
        rate = self._work.rate[at]
        works = rate > 0
        return at[works], metric[works], values[works] / rate[works]

    def _measured(self, at: Integers, table: pd.DataFrame) -> Measured:
        here = at >= 0
        return at[here], self._compared.numbers(table["metric"])[here], table["value"].to_numpy(dtype=float)[here]


class _Additive:
    """The names, with or without a scope, of what is compared by its difference."""

    def __contains__(self, name: object) -> bool:
        return str(name).rpartition(_BETWEEN)[2] in (*EVENTS, *DIFFERENCES)


def _contrasts(plan: Plan) -> pd.DataFrame:
    """The co-runs against their baselines, and the placebos of each against alone."""
    known = mix_contrasts(plan)
    busy = known[(known["baseline"] == "placebo") & (known["partition"] == UNMANAGED)]
    busy = busy.assign(
        scene=busy["baseline_scene"], baseline_scene="alone", baseline="alone", row=busy["row"] + len(known)
    )
    return pd.concat([known[known["baseline"].isin(BASELINES)], busy], ignore_index=True)


def _watched(slices: pd.DataFrame) -> pd.DataFrame:
    """When the watched slice of each window was open, of those that count; what is read in it alone is a rate of it."""
    usable_ones = slices["watched"].to_numpy(dtype=bool) & (slices["reasons"] == "").to_numpy(dtype=bool)
    edges = slices.loc[usable_ones, [*_KEY, "open_ns", "close_ns"]].drop_duplicates(_KEY)
    return edges.astype({"cohort": object})


def _of_use(samples: pd.DataFrame) -> pd.DataFrame:
    """What is read here: the many readings of a monitor only where controllers were read, to compare them."""
    metric = samples["metric"]
    controllers = [name for name, ours in _OF_PACKAGES.items() if ours == CONTROLLERS]
    monitor = [_MBM] if metric.isin(controllers).any() else []
    wanted = metric.isin([*monitor, *_ALONE, *_OF_CPUS, *_OF_PACKAGES, *_OF_GPUS]) & samples["source"].isin(SOURCES)
    return samples[wanted.to_numpy(dtype=bool)]


def _of_cpus(samples: pd.DataFrame) -> pd.DataFrame:
    """What CPUs show, by the member on them: the mean clock over the time that they ran, and events."""
    key = [*_KEY, "member"]
    clocks = samples[samples["source"] == "busy_clock"].pivot_table(
        index=[*key, "subject"], columns="metric", values="value", aggfunc="mean"
    )
    tables = []
    if {_BUSY, _RUNNING} <= set(clocks):
        clocks = clocks.dropna(subset=[_BUSY, _RUNNING]).assign(work=lambda table: table[_BUSY] * table[_RUNNING])
        sums = clocks.groupby(level=key)[["work", _RUNNING]].sum()
        sums = sums[sums[_RUNNING] > 0]
        tables.append((sums["work"] / sums[_RUNNING]).rename("value").reset_index().assign(metric=CPU_CLOCK))
    seen = samples[(samples["metric"] == _MHZ) & (samples["note"].astype(str) == SHOWN_BY_DRIVER)]
    at_edges = seen.groupby(key)["value"].mean().reset_index()
    tables.append(at_edges.assign(value=at_edges["value"] / 1e3, metric=AT_EDGES))
    events = samples[samples["metric"].isin(_OF_CPUS).to_numpy(dtype=bool)]
    events = events.assign(metric=events["metric"].map(_OF_CPUS))
    tables.append(_known(events, [*key, "metric"]).reset_index())
    return pd.concat(tables, ignore_index=True)


def _of_packages(samples: pd.DataFrame) -> pd.DataFrame:
    """What belongs to each package; what its controllers read and wrote is added up, where both are known."""
    own = samples[samples["subject"].str.startswith("package") & samples["metric"].isin(_OF_PACKAGES)]
    own = _with_both_directions(own)
    scopes = own["subject"].str.replace("package", "package ", regex=False)
    own = own.assign(metric=scopes + _BETWEEN + own["metric"].map(_OF_PACKAGES))
    return _known(own, [*_KEY, "metric"]).reset_index()


def _of_gpus(samples: pd.DataFrame) -> pd.DataFrame:
    """What each GPU showed on average in a window; unknown where one reading is."""
    own = samples[samples["metric"].isin(_OF_GPUS).to_numpy(dtype=bool)]
    scopes = own["subject"].str.replace("gpu", "gpu ", regex=False)
    percent = np.where(own["metric"] == "gpu_held_down", 100.0, 1.0)  # of its readings
    own = own.assign(metric=scopes + _BETWEEN + own["metric"].map(_OF_GPUS), value=own["value"] * percent)
    return _known(own, [*_KEY, "metric"], "mean").dropna().reset_index()


def _of_all(samples: pd.DataFrame, watched: pd.DataFrame, active: "pd.Series[int]") -> pd.DataFrame:
    """What is known of all the launch's packages together: others' traffic, and MBM against the controllers.

    `active` is the number of members in each window: where the traffic of one is not known, that of all is not.
    """
    foreign = _known(samples[samples["metric"] == _FOREIGN], _KEY)
    read = samples[samples["metric"] == _MBM]
    read = read[~read["subject"].str.contains(" l3:", regex=False)].merge(watched, on=_KEY)
    read = read[(read["t_ns"] >= read["open_ns"]) & (read["t_ns"] <= read["close_ns"])]
    by_member = read.groupby([*_KEY, "subject"])["value"].mean().dropna().groupby(level=_KEY)
    of_members = by_member.sum()[by_member.size() >= active.reindex(by_member.size().index, fill_value=0)]
    moved = [name for name, metric in _OF_PACKAGES.items() if metric == CONTROLLERS]
    controllers = _known(_with_both_directions(samples[samples["metric"].isin(moved).to_numpy(dtype=bool)]), _KEY)
    of_ids = of_members + foreign
    share = (of_ids / controllers[controllers > 0]).dropna()
    named = {FOREIGN: foreign, SEEN_BY_MBM: share, WITHOUT_ID: (controllers - of_ids).dropna()}
    return pd.concat(
        [
            values.rename("value").reset_index().assign(metric=f"{PACKAGES}{_BETWEEN}{metric}")
            for metric, values in named.items()
        ],
        ignore_index=True,
    )


def _known(table: pd.DataFrame, key: Sequence[str], how: Literal["sum", "mean"] = "sum") -> "pd.Series[float]":
    """The sum of the values of each key; unknown where one of them is."""
    groups = table.assign(lacks=table["value"].isna()).groupby(list(key))
    return groups["value"].agg(how).where(~groups["lacks"].any())


def _with_both_directions(samples: pd.DataFrame) -> pd.DataFrame:
    """Take away the value of what controllers read where what they wrote is not known, and the other way round."""
    directions = samples[samples["metric"].isin(_DIRECTIONS)]
    known = directions.groupby([*_KEY, "subject"])["metric"].nunique().rename("directions")
    table = samples.merge(known.reset_index(), on=[*_KEY, "subject"], how="left")
    one_alone = table["metric"].isin(_DIRECTIONS) & (table["directions"] < len(_DIRECTIONS))
    return table.assign(value=table["value"].mask(one_alone)).drop(columns="directions")


def _per_second(table: pd.DataFrame, watched: pd.DataFrame) -> pd.DataFrame:
    """Divide counts of events by the time in which they were counted."""
    table = table.merge(watched, on=_KEY, how="left")
    seconds = (table["close_ns"] - table["open_ns"]) / 1e9
    is_event = table["metric"].map(lambda name: name.rpartition(_BETWEEN)[2]).isin(EVENTS)
    return table.assign(value=table["value"].where(~is_event, table["value"] / seconds)).dropna(subset=["value"])
