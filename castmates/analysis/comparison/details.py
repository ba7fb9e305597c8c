"""What lies below the losses of two studies: changes of counters, phases, operations and quantiles, compared.

A change and its interval are those of the study itself. Student's interval over n launches has their mean and their
variance in it, so Welch's t over the launches of both follows from the two intervals exactly. Before it, the tables of
each study become changes under names that other studies know too.

A study groups its operations by what they take of its own step. Two studies may so have groups of one name that are not
made of the same operations: here groups are made once, by the mean of what the operations take of the steps of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd

from castmates.analysis.comparison.comparison import BOTH, ONLY_A, ONLY_B
from castmates.analysis.comparison.launches import gifts, matches, plain_members
from castmates.analysis.core import adjusted, declared
from castmates.analysis.effects.system import ALONE
from castmates.analysis.effects.verdicts import EFFECT_LEVEL, LARGER, SMALLER, detail_verdicts
from castmates.analysis.explanations.resources import MEMBER
from castmates.analysis.operations.effects import estimate_operation_effects, groups, groups_by_type
from castmates.analysis.operations.per_trace import UNMATCHED, Traces, lead_alone
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, columns_of, quantile, ratio
from castmates.analysis.statistics.welch import welch
from castmates.results.columns.comparison import COMPARISON_DETAILS
from castmates.results.columns.study import frame
from castmates.study.class_names import workload_of
from castmates.study.spec import UNMANAGED, Plan

RATIO, POINTS = "ratio", "points"
PROVEN = (LARGER, SMALLER)
PER_CENT = 100.0
KEY = ["mix", "member", "role", "item", "scale"]
_ENDS = ("", "_low", "_high")
CORUN = "corun"
_NAME = ["operation", "type"]


class Kind(NamedTuple):
    """One table of details."""

    name: str  # counters
    apart: tuple[str, ...] = ()  # items that stand for the whole, and are adjusted by themselves


KINDS = (
    Kind("counters"),
    Kind("phases", ("step",)),
    Kind("operations", ("step",)),
    Kind("quantiles"),
)


@dataclass(frozen=True)
class Changes:
    """One study: its plan, and its changes of one kind, a row each."""

    COLUMNS: ClassVar = (*KEY, "partition", "platform", "change", "change_low", "change_high", "launches")

    plan: Plan
    table: pd.DataFrame


def compare_changes(baseline: Changes, others: Mapping[str, Changes], kind: Kind, margin: float) -> pd.DataFrame:
    """Each of the others, by letter, against the baseline; p is adjusted over the rows of all of them."""
    parts = [
        _compared(baseline, other).assign(letter=letter, study_a=baseline.plan.study, study_b=other.plan.study)
        for letter, other in others.items()
        if len(baseline.table) and len(other.table)  # what only one study looked at is no difference
    ]
    if not parts:
        return frame([], COMPARISON_DETAILS)
    table = pd.concat(parts, ignore_index=True)
    family = (table["role"] == "antagonist", table["partition"] != UNMANAGED, table["item"].isin(kind.apart))
    table["p_holm"] = adjusted(table, "platform_a", *family)
    table["verdict"] = detail_verdicts(table, margin)
    return declared(table, COMPARISON_DETAILS)


def _compared(a: Changes, b: Changes) -> pd.DataFrame:
    matched = matches(gifts(a.plan), gifts(b.plan))
    ours, theirs = a.table.assign(own=a.table["partition"]), b.table.assign(own=b.table["partition"])
    names = {(match.mix, match.b): match.a for match in matched}
    called = zip(theirs["mix"], theirs["partition"], strict=True)
    theirs["partition"] = [names.get(key, key[1]) for key in called]
    key = [*KEY, "partition"]
    order = pd.concat([ours[key], theirs[key]]).drop_duplicates(ignore_index=True).reset_index(names="order")
    both = ours.merge(theirs, on=key, how="outer", suffixes=("_a", "_b"), indicator=True)
    both = both.merge(order, on=key).sort_values("order", ignore_index=True)
    both["where"] = both["_merge"].astype("str").map({"both": BOTH, "left_only": ONLY_A, "right_only": ONLY_B})
    for side in "ab":
        both[f"partition_{side}"] = both[f"own_{side}"].fillna("")
        both[f"platform_{side}"] = both[f"platform_{side}"].fillna("")
        both[f"launches_{side}"] = both[f"launches_{side}"].fillna(0)
    difference = welch(_launches(both, "a"), _launches(both, "b"))
    comparable = (both["where"] == BOTH) & (both["platform_a"] == both["platform_b"])
    both = both.assign(**{str(name): values.where(comparable) for name, values in difference.items()})
    points = both["scale"] == POINTS
    back = columns_of(both, "difference", lambda values: (PER_CENT * values).where(points, ratio(values)))
    named = {f"change{end}_{side}": f"change_{side}{end}" for end in _ENDS for side in "ab"}
    return both.assign(**back).rename(columns=named)


def _launches(table: pd.DataFrame, side: str) -> pd.DataFrame:
    """Mean and variance over the launches of one study, from its interval: of logarithms, and of points as shares."""
    points = (table["scale"] == POINTS).to_numpy()
    values = [table[f"change{end}_{side}"].to_numpy(dtype=float) for end in _ENDS]
    with np.errstate(invalid="ignore", divide="ignore"):
        middle, low, high = (np.where(points, each / PER_CENT, np.log(each)) for each in values)
    launches = table[f"launches_{side}"].to_numpy(dtype=float)
    freedom = np.where(launches >= FEWEST_LAUNCHES, launches - 1, np.nan)
    error = (high - low) / 2 / quantile(freedom)
    return pd.DataFrame({"mean": middle, "variance": error**2 * launches, "launches": launches}, index=table.index)


def counter_changes(plan: Plan, resources: pd.DataFrame) -> pd.DataFrame:
    """What members, and packages, used beside others against alone."""
    rows = resources[(resources["scene"] == CORUN) & (resources["baseline"] == ALONE)]
    whose = rows["scope"].where(rows["scope"] != MEMBER, "")
    item = rows["metric"] + whose.map(lambda scope: f" of {scope}" if scope else "")
    return _changes(plan, rows.assign(item=item, launches=rows["launches"]))


def phase_changes(plan: Plan, phases: pd.DataFrame) -> pd.DataFrame:
    """By how much longer each phase of a lead's step takes, in points of the step alone."""
    rows = phases[(phases["baseline"] == ALONE) & (phases["antagonists"] != "")]
    ends = {f"change{end}": rows[f"loss{loss}"] for end, loss in (("", "_pct"), ("_low", "_low"), ("_high", "_high"))}
    return _changes(plan, rows.assign(item=rows["phase"], scale=POINTS, role="lead", launches=rows["launches"], **ends))


def quantile_changes(plan: Plan, latency: pd.DataFrame) -> pd.DataFrame:
    """How many times as long steps and requests take beside others."""
    rows = latency[(latency["kind"] == CORUN) & (latency["baseline"] == ALONE) & latency["ratio"].notna()]
    ends = {f"change{end}": rows[f"ratio{end}"] for end in ("", "_low", "_high")}
    item = rows["quantile"] + " of a " + rows["what"]
    return _changes(plan, rows.assign(item=item, scale=RATIO, launches=rows["launches_paired"], **ends))


def operation_changes(plan: Plan, effects: pd.DataFrame) -> pd.DataFrame:
    """How many times as long each group of operations takes of a lead's step beside others."""
    if effects.empty:
        return pd.DataFrame(columns=list(Changes.COLUMNS))
    ends = {f"change{end}": effects[f"ratio{end}"] for end in ("", "_low", "_high")}
    return _changes(plan, effects.assign(item=effects["group"], scale=RATIO, role="lead", **ends))


def _changes(plan: Plan, rows: pd.DataFrame) -> pd.DataFrame:
    """With members by their plain names, each question once: of several processors that of most launches."""
    names = plain_members(plan)
    member = [names.get((mix, name), name) for mix, name in zip(rows["mix"], rows["member"], strict=True)]
    table = rows.assign(member=member)[list(Changes.COLUMNS)].sort_values("launches", ascending=False, kind="stable")
    once = table.drop_duplicates(["mix", "member", "role", "item", "partition", "platform"])
    return once.sort_index().reset_index(drop=True)


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
        # The largest share of a step in operations that another study has none of.
        alone = [rows[rows["alone"] & (rows["operation"] != "")] for rows in own.values()]
        taken = [rows.groupby(_NAME)["shared_ms"].sum() for rows in alone]
        differences = [float(one[~one.index.isin(other.index)].sum()) for one in taken for other in taken]
        share = max(differences, default=0.0)

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
