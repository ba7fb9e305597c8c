"""The profile launches of a plan: the facts of which the study's tables of operations are made.

Times under oneDNN's log enter no table but the roofline with those of other launches, and there no row of theirs,
because the log costs time. The work that primitives show is that of an operation in all launches.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.dataflow.summary import PathTraces, path_traces
from castmates.analysis.effects.verdicts import effect_level
from castmates.analysis.operations.per_trace import Traces, per_launch, per_trace
from castmates.analysis.operations.primitives import Roofs, estimated_work, known_work, logged_work, reduced
from castmates.pipeline.estimates import Estimates, write
from castmates.results.columns.registry import written_by
from castmates.results.folder import StudyFolder
from castmates.results.node_notes import looks_before, profile_looks_before, remember_profile_look
from castmates.results.profiles import (
    Profile,
    first_epoch_profiles,
    logged_profiles,
    read_graph,
    read_primitives,
    read_profile,
    read_record,
    usual_profiles,
)
from castmates.results.tables import tables_of
from castmates.study.spec import Plan

RULE = "estimate_operations"
GRAPH = ("nodes", "edges")
Facts = dict[str, Any]  # by the names that estimates have for them


def write_tables(plan: Plan, folder: StudyFolder, margin: float, output: Path) -> None:
    """Read every profile launch of the plan, one at a time, and write all tables into `output`."""
    paths = usual_profiles(plan, folder)
    logged, graphs = facts_of_logged(folder, logged_profiles(plan, folder)), facts_of_graphs(folder, paths)
    facts = {"margin": margin, "level": _level(paths, folder), "work": work_of(logged, graphs)}
    facts |= _usual(folder, paths) | _epochs(folder, first_epoch_profiles(plan, folder)) | logged | graphs
    write(Estimates(RULE, facts), written_by(RULE, tables_of(plan, folder)), output)


def work_of(logged: Facts, graphs: Facts) -> pd.DataFrame:
    """How much work operations do in a call, as far as primitives or graphs show it."""
    shown = [] if logged["logged"] is None else [logged_work(logged["primitives"], logged["logged"])]
    return known_work(*shown, *([] if graphs["nodes"] is None else [estimated_work(graphs["nodes"])]))


def facts_of_logged(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches under oneDNN's log."""
    traces, parts = [], []
    for path, profile in _profiles(folder, paths):
        traces.append(per_trace(profile.calls, profile.steps))
        parts.append(reduced(read_primitives(folder.profile(path)), traces[-1].steps))
    if not traces:
        return {"logged": None, "primitives": None, "roofs": {}, "flags": None}
    every, primitives = Traces.together(traces), pd.concat(parts, ignore_index=True)
    records = [read_record(folder, path) for path in paths]
    roofs = _roofs(every.steps, records)
    return {"logged": every, "primitives": primitives, "roofs": roofs, "flags": _flags(records)}


def _usual(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches that show usual steps."""
    traces: list[Traces] = []
    rows: dict[str, list[pd.DataFrame]] = {"steps": [], "memory": [], "stages": [], "device_calls": []}
    for _, profile in _profiles(folder, paths):
        traces.append(per_trace(profile.calls, profile.steps))
        for name, tables in rows.items():
            tables.append(getattr(profile, name))
    if not traces:
        return dict.fromkeys(("traces", "compared", *rows))
    every = Traces.together(traces)
    whole = {name: pd.concat(tables, ignore_index=True) for name, tables in rows.items()}
    return {"traces": every, "compared": every.compared, **whole}


def facts_of_graphs(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches that left a graph; nodes and edges are of the first of each lead."""
    found, graphs = [], []
    for path, profile in _profiles(folder, paths):
        graph = read_graph(folder.profile(path))
        if graph is not None and len(graph.nodes):
            found.append(path_traces(profile.calls, profile.steps, graph.nodes, graph.edges))
            graphs.append(graph)
    if not found:
        return dict.fromkeys(("paths", *GRAPH))
    first = {str(graph.nodes["member"].iloc[0]): graph for graph in reversed(graphs)}.values()
    nodes, edges = (pd.concat([getattr(graph, name) for graph in first], ignore_index=True) for name in GRAPH)
    return {"paths": PathTraces.together(found), "nodes": nodes, "edges": edges}


def _epochs(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches whose traces begin with the first record, and what is known of each trace."""
    about = [
        {"cohort": record["cohort"], "launch": record["launch"]}
        | {name: trace[name] for name in ("scene", "round", "epoch", "pair", "storage_bytes")}
        for record in (read_record(folder, path) for path in paths)
        for trace in record["traces"]
        if not trace["reason"]
    ]
    launches = ((profile.calls, profile.steps) for _, profile in _profiles(folder, paths))
    return {"epochs": per_launch(launches), "epochs_about": pd.DataFrame(about)}


def _profiles(folder: StudyFolder, paths: Iterable[str]) -> Iterator[tuple[str, Profile]]:
    """Launches, one at a time; what has no step is left out."""
    for path in paths:
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            yield path, profile


def _level(paths: Sequence[str], folder: StudyFolder) -> float:
    """The level of verdicts: stricter where launches were added after their results were there."""
    cohorts = Counter(path.rpartition("/")[0] for path in paths)
    remember_profile_look(folder, max(cohorts.values(), default=0))
    return effect_level([*looks_before(folder), *profile_looks_before(folder)])


def _roofs(steps: pd.DataFrame, records: Sequence[Mapping[str, object]]) -> Mapping[str, Roofs]:
    """The roofs of each lead: those of its launches alone, because leads have different CPUs."""
    measured: dict[str, list[dict[str, object]]] = {}
    members = dict(steps[["cohort", "member"]].drop_duplicates().itertuples(index=False, name=None))
    for record in records:
        if isinstance(roofs := record.get("roofs"), dict) and record.get("cohort") in members:
            measured.setdefault(members[record["cohort"]], []).append(roofs)
    return {member: Roofs.of(each) for member, each in measured.items()}


def _flags(records: Sequence[Mapping[str, object]]) -> list[str] | None:
    """The processor's flags that all launches agree on; None where some do not know them."""
    known = [record.get("flags") for record in records]
    sets = [set(flags) for flags in known if isinstance(flags, list)]
    return sorted(set.intersection(*sets)) if sets and len(sets) == len(known) else None
