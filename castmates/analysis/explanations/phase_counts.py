"""What was counted in each phase of a lead's steps, per step: beside others against alone, paired inside rounds.

A count covers those stays in a phase that lie wholly inside slices, and how long they lasted is known; the steps show
how long the phase takes. So a count per step is the count per second of the phase times its seconds in a step.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from castmates.analysis.core import declared, in_order, of_counts, of_numbers, of_texts, within_launch
from castmates.analysis.explanations.counted_metrics import USABLE, is_per_unit, with_ratios
from castmates.analysis.explanations.phases import REST, STEP, PhaseTimes, phase_label
from castmates.analysis.keys import ROW, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, ratio
from castmates.analysis.statistics.name_codes import codes_in
from castmates.analysis.statistics.window_values import Differences, Values, both_sides
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame

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
            self._add_times(spent, names)

    def _add_times(self, spent: Values, names: Sequence[str]) -> None:
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
