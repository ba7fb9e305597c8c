"""Which phase of a lead's steps loses how much: paired within rounds, as the effects are.

The loss of a phase is the time that it takes longer in a step, in per cent of the step alone: so the losses of all
phases, with the rest that lies between them, add up to the loss of the step.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order, of_counts, of_numbers, of_texts, within_launch
from castmates.analysis.explanations.counted_metrics import USABLE, is_per_unit, with_ratios
from castmates.analysis.keys import CELL, PLATFORM_WINDOW, ROW, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, ratio
from castmates.analysis.statistics.window_values import (
    Differences,
    Integers,
    Values,
    WindowPlaces,
    both_sides,
    coded,
    codes_in,
    combinations,
)
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame
from castmates.study.class_names import workload_of
from castmates.study.spec import UNMANAGED

SUFFIX = "_s"
STEP, REST = "step", "rest"  # the whole step; what of it lies in no phase
OWN = " (phase)"  # behind the name of a phase that is called as one of them is
_LAST = (REST, STEP)

# `phase` is forward, forward/attention …; rest is what lies in no phase, step the whole. One that is `outermost` is a
# part of the step by itself; others lie in one, or in other threads. Milliseconds are those in a step, mean over
# launches; share and loss (longer in a step) are per cent of the baseline's step.
PHASES: Columns = {
    **of_texts("study mix lead antagonists partition baseline member phase"),
    "outermost": "bool",
    **of_numbers("baseline_ms scene_ms share_pct loss_pct loss_low loss_high within_low within_high"),
    **of_counts("launches rounds"),
    **of_texts("platform"),
}


def phases_of(steps: pd.DataFrame) -> list[str]:
    """The phases that a table of steps has columns for."""
    return [str(name).removesuffix(SUFFIX) for name in steps if str(name).endswith(SUFFIX)]


def phase_label(phase: str) -> str:
    """The name that a phase has here: its own, unless that is kept for the whole step or the rest."""
    return phase + OWN if phase.partition(OWN)[0] in (STEP, REST) else phase


def is_outermost(phase: str) -> bool:
    """Whether a phase is a part of the step by itself."""
    return "/" not in phase


class Leads:
    """Where the steps of leads may lie."""

    def __init__(self, windows: pd.DataFrame) -> None:
        """Number the valid windows; `places` are their scenes in their rounds."""
        ours = (windows["role"] == "lead") & windows["valid"]
        leads = coded(windows.loc[ours, [*PLATFORM_WINDOW, "round", "scene"]])
        self._windows = WindowPlaces.of(leads, PLATFORM_WINDOW)
        self._place, self.places = combinations(leads, CELL)

    def place_of(self, table: pd.DataFrame) -> Integers:
        """The place of each row, -1 where it is in no valid window of a lead."""
        return np.append(self._place, -1)[self._windows.find(table)]

    def spent(self, steps: pd.DataFrame) -> tuple[Values, list[str]]:
        """Seconds per unit that were spent in each place: in phases, in none of them, and in the whole step.

        Only steps of which phases and length are both known count, the length from one heartbeat to the next. The first
        heartbeat of a slice ends none: what passed since the last one of the slice before are many steps, and a time
        for which the lead was frozen.
        """
        at, phases = self._windows.find(steps), phases_of(steps)
        own = np.flatnonzero(at >= 0)
        own = own[np.lexsort((steps["t_ns"].to_numpy(dtype=np.int64)[own], at[own]))]
        time, units, cut = (steps[name].to_numpy(dtype=np.int64)[own] for name in ("t_ns", "units", "slice"))
        done, known = np.diff(units, prepend=units[:1]), steps["begin_ns"].notna().to_numpy(dtype=bool)[own]
        known &= (np.diff(at[own], prepend=-1) == 0) & (np.diff(cut, prepend=-1) == 0) & (done > 0)
        length, done, place = np.diff(time, prepend=time[:1])[known] / 1e9, done[known], self._place[at[own[known]]]
        inside = [steps[f"{name}{SUFFIX}"].to_numpy(dtype=float)[own[known]] for name in phases]
        sums = [_sums(place, values) for values in (*inside, length, done)]
        rows = np.flatnonzero(np.bincount(place))
        *parts, whole = (own[rows] / sums[-1][rows] for own in sums[:-1])
        outermost = [part for name, part in zip(phases, parts, strict=True) if is_outermost(name)]
        rest = whole - sum(map(np.nan_to_num, outermost), start=np.zeros(len(rows)))
        return Values(rows, np.column_stack([*parts, rest, whole])), [*map(phase_label, phases), REST, STEP]


def _sums(place: Integers, values: Floats) -> Floats:
    """Of each place; NaN where none of its values is known."""
    known = ~np.isnan(values)
    sums = np.bincount(place[known], weights=values[known], minlength=int(place.max(initial=-1)) + 1)
    return np.where(np.bincount(place[known], minlength=len(sums)) > 0, sums, np.nan)


class PhaseTimes:
    """What leads spent in their phases, from steps of some whole launches at a time: millions are read once."""

    def __init__(self, steps: Iterable[pd.DataFrame], windows: pd.DataFrame) -> None:
        """Read them, where any scene is compared with another."""
        self.compared, self.leads = contrasts(windows), Leads(windows)
        self.parts = [] if self.compared.empty else [self.leads.spent(part) for part in steps]


def losses_by_phase(times: PhaseTimes) -> pd.DataFrame:
    """A row per lead, mix, partition and phase against alone; under a partition also against the mix without one."""
    compared, leads = times.compared, times.leads
    if compared.empty:
        return frame([], PHASES)
    differences = Differences.of_contrasts(leads.places, compared, _LAST)
    for spent, names in times.parts:
        differences.add(spent, differences.numbers(names), _sides)
    table = differences.table(["phase"])
    if table.empty:
        return frame([], PHASES)
    table["order"] = (table["number"] - len(_LAST)) % len(differences.metrics)  # rest and step stand last
    table = table.merge(compared.drop_duplicates("row"), on="row").sort_values([*ROW, "order"])
    columns = columns_of(table, "loss_pct", ends="loss") | {
        "outermost": table["phase"].map(is_outermost) & (table["phase"] != STEP),
        "baseline_ms": 1e3 * table["seconds_baseline"],
        "scene_ms": 1e3 * table["seconds"],
        "share_pct": 100 * table["seconds_baseline"] / table["step_baseline"],
    }
    return declared(table.assign(**columns), PHASES)


def _sides(scene: Floats, baseline: Floats) -> dict[str, Floats]:
    """Both, phase by phase, and the difference in per cent of the baseline's step, which is the last column."""
    step = np.broadcast_to(baseline[:, -1:], baseline.shape)
    values = {"seconds": scene, "seconds_baseline": baseline, "step_baseline": step}
    return {"difference": 100 * (scene - baseline) / step} | values


def contrasts(windows: pd.DataFrame) -> pd.DataFrame:
    """What is compared with what, from the windows: a row per cohort, scene of a lead, and baseline."""
    about = ["study", "cohort", "scene", "kind", "mix", "partition", "member", "workload"]
    rows: dict[tuple[str, ...], int] = {}
    compared = []
    for scene in coded(windows.loc[windows["role"] == "lead", about]).drop_duplicates().to_dict("records"):
        partitioned = scene["partition"] != UNMANAGED
        baselines = ["alone"] if scene["kind"] == "corun" or (scene["kind"] == "alone" and partitioned) else []
        baselines += [UNMANAGED] if scene["kind"] == "corun" and partitioned else []
        for baseline in baselines:
            place = (scene["mix"], scene["partition"], scene["member"], baseline)
            compared.append(
                {str(key): value for key, value in scene.items()}
                | {
                    "row": rows.setdefault(place, len(rows)),
                    "baseline": baseline,
                    "baseline_scene": "alone" if baseline == "alone" else f"corun:{scene['mix']}",
                    "lead": workload_of(scene["member"]),
                    "antagonists": scene["mix"].partition("+")[2],
                }
            )
    return pd.DataFrame(compared)


def largest_loss(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The part of the step that loses most, where one loses at all."""
    parts = [row for row in rows if row["outermost"] and np.isfinite(row["loss_pct"]) and row["loss_pct"] > 0]
    return max(parts, key=lambda row: row["loss_pct"], default=None)


def unmanaged_against_alone(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that a figure begins with."""
    return table[(table["baseline"] == "alone") & (table["partition"] == UNMANAGED)]


# What was counted in each phase of a lead's steps, per step: beside others against alone, paired inside rounds.
#
# A count covers those stays in a phase that lie wholly inside slices, and how long they lasted is known; the steps show
# how long the phase takes. So a count per step is the count per second of the phase times its seconds in a step.

SOURCES = ("in-process", "by time")  # the better one first: it was read at the phase's own edges

# `metric` is an event per step, or a ratio of two events in the phase, which has no `unit`; `alone` is in the baseline,
# which under a partition is also the mix without one: geometric means over the rounds that are paired.
PHASE_COUNTS: Columns = {
    **of_texts("study mix lead antagonists partition baseline member phase metric unit source"),
    **of_numbers("alone corun ratio ratio_low ratio_high within_low within_high"),
    **of_counts("launches rounds"),
    **of_texts("platform"),
}
NEEDED = [*WINDOW, "platform", "event", "value", "status", "source", "phase", "seconds"]  # of counters.parquet
NAMES = [name for name in NEEDED if COUNTERS[name] == "str"]  # of these; they may be categories
Parts = Iterable[pd.DataFrame]  # some whole launches at a time


def counts_by_phase(times: PhaseTimes, counts: Parts) -> pd.DataFrame:
    """A row per lead, mix, partition, phase and metric against alone; under a partition also against no partition."""
    if times.compared.empty:
        return frame([], PHASE_COUNTS)
    known = _Counted(times)
    for part in counts:
        known.add_counts(part)
    return known.table()


class _Counted:
    """What is known of all phases, from some whole launches at a time."""

    def __init__(self, times: PhaseTimes) -> None:
        """Find once what is compared with what, and how long the phases are."""
        self._leads, self._compared = times.leads, times.compared
        self._differences = Differences.of_contrasts(self._leads.places, self._compared)
        self._seconds: dict[str, Floats] = {}  # of each phase in a step, by place
        for spent, names in times.parts:
            for column, name in enumerate(names):
                if name not in (REST, STEP):
                    of_phase = self._seconds.setdefault(name, np.full(len(self._leads.places), np.nan))
                    of_phase[spent.rows] = spent.values[:, column]

    def add_counts(self, counts: pd.DataFrame) -> None:
        """Take in what was counted in some launches."""
        usable = counts["status"].isin(USABLE) & counts["source"].isin(SOURCES) & (counts["phase"] != "")
        place = self._leads.place_of(counts)
        there = usable.to_numpy(dtype=bool) & (counts["seconds"] > 0).to_numpy(dtype=bool) & (place >= 0)
        rows = counts[there].assign(place=place[there])
        for (phase, source), own in rows.groupby(["phase", "source"], observed=True, sort=False):
            if (in_step := self._seconds.get(phase_label(str(phase)))) is not None:
                self._add(phase_label(str(phase)), str(source), own, in_step)

    def _add(self, phase: str, source: str, counts: pd.DataFrame, in_step: Floats) -> None:
        """Take in one phase, with its seconds in a step of each place."""
        at, events = counts["place"].to_numpy(dtype=np.int64), list(dict.fromkeys(map(str, counts["event"])))
        value, seconds = (counts[name].to_numpy(dtype=float) for name in ("value", "seconds"))
        raw = Values.of(at, codes_in(counts["event"], events), value / seconds * in_step[at], len(events))
        values, names = with_ratios(raw.values, events)
        metrics = self._differences.numbers((phase, source, name) for name in names)
        self._differences.add(Values(raw.rows, np.log(values)), metrics, both_sides)

    def table(self) -> pd.DataFrame:
        """Each co-run against its baselines, phases in the order of the step."""
        table = self._differences.table(["phase", "source", "metric"])
        if table.empty:
            return frame([], PHASE_COUNTS)
        table = table.drop(columns="baseline").assign(
            alone=ratio(table["baseline"]),
            corun=ratio(table["scene"]),
            unit=np.where(table["metric"].map(is_per_unit), "step", ""),
            **columns_of(table, "ratio", ratio),
            **within_launch(table),
        )
        about = self._compared.drop_duplicates("row").drop(columns="scene")
        order = {name: place for place, name in enumerate(self._seconds)}
        return declared(in_order(table.merge(about, on="row"), [*ROW, "phase", "number"], phase=order), PHASE_COUNTS)


def better_source(table: pd.DataFrame) -> pd.DataFrame:
    """Each phase and metric once: as the job itself read it where it did, by time elsewhere."""
    rank = table["source"].map({name: place for place, name in enumerate(SOURCES)})
    keys = ["lead", "member", "mix", "partition", "baseline", "phase", "metric", "platform"]
    best = rank.groupby([table[key] for key in keys], sort=False).transform("min")
    return table[rank == best]
