"""What lies below the losses of studies that are compared: reads what each left of it, and compares what they share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from castmates.analysis.comparison.details import (
    KINDS,
    Changes,
    compare_changes,
    counter_changes,
    effects_together,
    operation_changes,
    phase_changes,
    quantile_changes,
)
from castmates.analysis.explanations.phases import PhaseTimes, losses_by_phase
from castmates.analysis.operations.per_trace import Traces, per_launch
from castmates.errors import CastmatesError
from castmates.report.text.words import counted, number
from castmates.results.bundles import StudyLaunches
from castmates.results.columns.comparison import COMPARISON_DETAILS
from castmates.results.columns.contract import Table
from castmates.results.columns.study import LATENCY, RESOURCES, frame
from castmates.results.find import Measured
from castmates.results.profiles import read_profile, usual_profiles
from castmates.results.tables import Tables
from castmates.study.spec import Plan

Plans = Mapping[str, Plan]
Studies = Mapping[str, Measured]
NAMES = ("study", "cohort", "member", "platform")  # of steps, which millions of them have in common


@dataclass(frozen=True)
class Details:
    """The tables of all kinds, and what has to be known of them."""

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # by kind, those that have rows
    notes: Sequence[str] = ()

    def table(self, kind: str) -> pd.DataFrame:
        """The table of a kind; without rows where the studies have none of it in common."""
        return self.tables.get(kind, frame([], COMPARISON_DETAILS))


NOTHING = Details()


def compare_details(studies: Studies, plans: Plans, margin: float) -> Details:
    """Compare what both the first study and another one left of counters, phases, operations and quantiles."""
    notes: list[str] = []
    found = {
        "counters": _of_tables(studies, plans, RESOURCES, counter_changes, notes),
        "phases": {letter: phase_changes(plans[letter], _phases(study)) for letter, study in studies.items()},
        "operations": _operations(studies, plans, margin, notes),
        "quantiles": _of_tables(studies, plans, LATENCY, quantile_changes, notes),
    }
    first, *others = studies
    tables = {}
    for kind in KINDS:
        sides = {letter: Changes(plans[letter], table) for letter, table in found[kind.name].items()}
        if first in sides:
            rest = {letter: sides[letter] for letter in others if letter in sides}
            tables[kind.name] = compare_changes(sides[first], rest, kind, margin)
    used = {letter for letter in studies if any(len(found[name].get(letter, ())) for name in ("counters", "quantiles"))}
    notes += _stale(studies, used)
    return Details({name: table for name, table in tables.items() if len(table)}, notes)


def _of_tables(
    studies: Studies,
    plans: Plans,
    columns: Table,
    read: Callable[[Plan, pd.DataFrame], pd.DataFrame],
    notes: list[str],
) -> dict[str, pd.DataFrame]:
    """The changes in a table of each study; of one that cannot be read, a note."""
    found = {}
    for letter, study in studies.items():
        try:
            found[letter] = read(plans[letter], Tables(study.folder).read(columns))
        except CastmatesError as problem:
            notes.append(f"{letter}'s table {columns.name} is not compared: {problem}")
    return found


def _phases(study: Measured) -> pd.DataFrame:
    """The losses by phase of a study whose leads report phases."""
    if not any(cohort.lead.phases for cohort in study.plan.cohorts):
        return losses_by_phase(PhaseTimes([], _NO_LEADS))
    launches = StudyLaunches(study.folder, study.folder.places(study.plan))
    return losses_by_phase(PhaseTimes(launches.parts("steps", categories=NAMES), launches.windows()))


_NO_LEADS = pd.DataFrame({name: [] for name in ("study", "cohort", "scene", "kind", "mix", "partition", "member")})
_NO_LEADS = _NO_LEADS.assign(workload=[], role=[], platform=[], launch=[], window=[], round=[], valid=[])


def _operations(studies: Studies, plans: Plans, margin: float, notes: list[str]) -> dict[str, pd.DataFrame]:
    """The changes of operations, in groups that all traced studies have."""
    traced = {letter: study for letter, study in studies.items() if usual_profiles(study.plan, study.folder)}
    if len(traced) < 2:  # nothing to compare: their millions of calls are not read
        return {}
    traces = {letter: found for letter, study in traced.items() if (found := _traces(study)) is not None}
    together = effects_together(traces, margin)
    for lead, share in together.other_graphs.items():
        notes.append(
            f"Operations of {lead} are compared by type and direction alone, because the graphs differ: "
            f"{number(100 * share, 0)} % of a step alone lies in operations that one of the studies does not have."
        )
    return {letter: operation_changes(plans[letter], table) for letter, table in together.effects.items()}


def _traces(study: Measured) -> Traces | None:
    """What each operation takes in each trace of a study, read one launch at a time."""
    profiles = (read_profile(study.folder.profile(path)) for path in usual_profiles(study.plan, study.folder))
    return per_launch((each.calls, each.steps) for each in profiles)


def _stale(studies: Studies, used: set[str]) -> Iterator[str]:
    """Which studies have tables of fewer launches than are measured."""
    for letter in sorted(used):
        study = studies[letter]
        try:
            known = len(pd.read_parquet(study.folder.table_file("launches"), columns=["launch"]))
        except (OSError, ValueError):
            continue
        if known < (there := len(study.plan.launches)):
            yield (
                f"{letter}'s tables are of {counted(known, 'launch')}, and {there} are measured: its counters and "
                "quantiles are those of the former; `castmates sweep` makes the tables again."
            )
