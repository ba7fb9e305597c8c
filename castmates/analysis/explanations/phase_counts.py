"""What was counted in each phase of a lead's steps, per step: beside others against alone, paired inside rounds.

A count covers those stays in a phase that lie wholly inside slices, and how long they lasted is known; the steps show
how long the phase takes. So a count per step is the count per second of the phase times its seconds in a step.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.explanations.counted_metrics import USABLE, is_per_unit, with_ratios
from castmates.analysis.explanations.phases import REST, STEP, PhaseTimes, phase_label
from castmates.analysis.keys import LAUNCH, ROW, WINDOW
from castmates.analysis.statistics.intervals import Floats, columns_of, ratio
from castmates.analysis.statistics.name_codes import codes_in
from castmates.analysis.statistics.window_values import (
    Groups,
    Pairs,
    Values,
    by_row,
    estimated,
    held_against,
    per_launch,
)
from castmates.results.columns.contract import Columns
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame

SOURCES = ("in-process", "by time")  # the better one first: it was read at the phase's own edges
SIDES = ("log_scene", "log_base")

PHASE_COUNTS: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "partition": "str",
    "baseline": "str",  # alone; under a partition also unmanaged
    "member": "str",
    "phase": "str",
    "metric": "str",  # an event per step, or a ratio of two events in the phase
    "unit": "str",  # step; "" for a ratio
    "source": "str",  # in-process, by time
    "alone": "float64",  # in the baseline: geometric mean over the rounds that are paired
    "corun": "float64",
    "ratio": "float64",  # corun / alone
    "ratio_low": "float64",  # 95 % between launches; NaN below three launches
    "ratio_high": "float64",
    "within_low": "float64",  # 95 % within launch
    "within_high": "float64",
    "launches": "int64",
    "rounds": "int64",
    "platform": "str",
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
        places = self._leads.places
        scene, base, row = held_against(places, self._compared)
        groups = places[[*LAUNCH, "platform"]].iloc[scene].assign(row=row)
        self._groups = Groups.of(groups, ROW)
        self._pairs = Pairs(scene, base, self._groups.number)
        self._seconds: dict[str, Floats] = {}  # of each phase in a step, by place
        self._metrics: dict[tuple[str, str, str], int] = {}  # phase, source and metric, and their numbers
        self._launches: list[pd.DataFrame] = []
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
        scene, base, group = self._pairs.inside(Values(raw.rows, np.log(values)))
        numbers = [self._metrics.setdefault((phase, source, name), len(self._metrics)) for name in names]
        columns = {"difference": scene - base, "log_scene": scene, "log_base": base}
        self._launches.append(per_launch(columns, group, np.array(numbers, dtype=np.int64), self._groups.size))

    def table(self) -> pd.DataFrame:
        """Each co-run against its baselines, phases in the order of the step."""
        if not sum(map(len, self._launches)):
            return frame([], PHASE_COUNTS)
        whole = by_row(self._launches, self._groups.launches)
        table = estimated(whole, "difference").join(whole[list(SIDES)].groupby("row").mean())
        number, line = np.divmod(table.index.to_numpy(), len(self._groups.rows))
        keys = pd.DataFrame(list(self._metrics), columns=["phase", "source", "metric"]).iloc[number]
        about = self._groups.rows.iloc[line]
        table = pd.concat([part.reset_index(drop=True) for part in (about, keys, table)], axis=1).assign(number=number)
        table = table.merge(self._compared.drop_duplicates("row"), on="row")
        order = {name: place for place, name in enumerate(self._seconds)}
        table = table.sort_values(
            [*ROW, "phase", "number"],
            key=lambda column: column.map(order) if column.name == "phase" else column,
        )
        return frame(_rows(table), PHASE_COUNTS)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    logs = {"alone": "log_base", "corun": "log_scene", "within_low": "within_low", "within_high": "within_high"}
    columns = columns_of(table, "ratio", ratio) | {name: ratio(table[column]) for name, column in logs.items()}
    table = table.assign(unit=np.where(table["metric"].map(is_per_unit), "step", ""), **columns)
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def better_source(table: pd.DataFrame) -> pd.DataFrame:
    """Each phase and metric once: as the job itself read it where it did, by time elsewhere."""
    rank = table["source"].map({name: place for place, name in enumerate(SOURCES)})
    keys = ["lead", "member", "mix", "partition", "baseline", "phase", "metric", "platform"]
    best = rank.groupby([table[key] for key in keys], sort=False).transform("min")
    return table[rank == best]
