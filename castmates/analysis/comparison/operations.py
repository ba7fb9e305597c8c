"""Traces of two studies or more -> what each group of operations takes longer, in groups that all of them have.

A study groups its operations by what they take of its own step. Two studies may so have groups of one name that are not
made of the same operations: here groups are made once, by the mean of what the operations take of the steps of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from castmates.analysis.effects.verdicts import EFFECT_LEVEL
from castmates.analysis.operations.effects import estimate_operation_effects, groups, groups_by_type
from castmates.analysis.operations.over_traces import lead_alone
from castmates.analysis.operations.per_trace import UNMATCHED, Traces
from castmates.study.class_names import workload_of

_NAME = ["operation", "type"]


@dataclass(frozen=True)
class Together:
    """The effects of each study, and what differs between the graphs of a lead."""

    effects: dict[str, pd.DataFrame]  # by letter, as `estimate_operation_effects` has them
    other_graphs: dict[str, float] = field(default_factory=dict)  # by lead: share of a step that one study alone has


def effects_together(studies: Mapping[str, Traces], margin: float) -> Together:
    """The effects of the studies in common groups; of a lead whose graphs differ, by type and direction alone."""
    plain = {letter: _without_cpus(traces) for letter, traces in studies.items()}
    leads = {lead for traces in plain.values() for lead in traces.operations["member"].unique()}
    known, others = {}, {}
    for lead in sorted(leads):
        own = {letter: shares for letter, traces in plain.items() if len(shares := _shares(traces, lead))}
        if not own:  # it was never traced alone
            continue
        share = _only_in_one(own)
        if share > UNMATCHED:
            others[lead] = share
        together = pd.concat(own.values(), ignore_index=True)
        known[lead] = (groups_by_type if share > UNMATCHED else groups)(together, together["alone"])
    effects = {
        letter: estimate_operation_effects(_only(traces, known), margin, EFFECT_LEVEL, known)
        for letter, traces in plain.items()
    }
    return Together(effects, others)


def _without_cpus(traces: Traces) -> Traces:
    """Leads by their names alone: they may sit on other CPUs elsewhere."""
    return traces.changed(lambda table: table.assign(member=table["member"].map(workload_of)))


def _only(traces: Traces, leads: Mapping[str, object]) -> Traces:
    """The traces of these leads."""
    return traces.changed(lambda table: table[table["member"].isin(list(leads))])


def _shares(traces: Traces, lead: str) -> pd.DataFrame:
    """A lead's operations, with their times as shares of what it does alone, so that each study weighs the same."""
    rows = traces.operations[traces.operations["member"] == lead]
    alone = lead_alone(rows)
    total = rows.loc[alone, "shared_ms"].sum()
    return rows.assign(alone=alone, shared_ms=rows["shared_ms"] / total) if total > 0 else rows.iloc[:0]


def _only_in_one(studies: Mapping[str, pd.DataFrame]) -> float:
    """The largest share of a step in operations that another study has none of."""
    alone = [rows[rows["alone"] & (rows["operation"] != "")] for rows in studies.values()]
    taken = [rows.groupby(_NAME)["shared_ms"].sum() for rows in alone]
    differences = [float(one[~one.index.isin(other.index)].sum()) for one in taken for other in taken]
    return max(differences, default=0.0)
