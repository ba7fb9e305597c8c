"""The profile launches of a plan: the facts of which the study's tables of operations are made.

Times under oneDNN's log enter no table but the roofline with those of other launches, and there no row of theirs,
because the log costs time. The work that primitives show is that of an operation in all launches.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.dataflow.per_trace import PathTraces, path_traces
from castmates.analysis.effects.verdicts import effect_level
from castmates.analysis.operations.known_work import estimated_work, known_work, logged_work
from castmates.analysis.operations.per_trace import Traces, per_launch, per_trace
from castmates.analysis.operations.primitives import reduced
from castmates.analysis.operations.roofline import Roofs
from castmates.pipeline.estimates import Estimates, write
from castmates.results.asked import looks_before, profile_looks_before, remember_profile_look
from castmates.results.columns.dataflow import GRAPH_NODES
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.profiles import (
    Graph,
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
Facts = dict[str, Any]  # by the names that estimates have for them


def write_tables(plan: Plan, folder: StudyFolder, margin: float, output: Path) -> None:
    """Read every profile launch of the plan, one at a time, and write all tables into `output`."""
    paths, logged = usual_profiles(plan, folder), read_logged(folder, logged_profiles(plan, folder))
    by_primitives = [logged_work(logged.primitives, logged.logged)] if logged else []
    facts = {
        "margin": margin,
        "level": _level(paths, folder, output),
        "work": known_work(*by_primitives, estimated_work(graph_nodes(folder, paths))),
        **(vars(logged) if logged else NOT_LOGGED),
        **_usual(folder, paths),
        **_paths(folder, paths),
        **_epochs(folder, first_epoch_profiles(plan, folder)),
    }
    write(Estimates(RULE, facts), written_by(RULE, tables_of(plan, folder)), output)


@dataclass(frozen=True)
class Logged:
    """The launches under oneDNN's log."""

    logged: Traces
    primitives: pd.DataFrame
    roofs: Mapping[str, Roofs]
    flags: Sequence[str] | None


NOT_LOGGED: Facts = {"logged": None, "primitives": None, "roofs": {}, "flags": None}


def read_logged(folder: StudyFolder, paths: Sequence[str]) -> Logged | None:
    """Read the launches at these paths; None without any."""
    traces, parts = [], []
    for path, profile in _profiles(folder, paths):
        traces.append(per_trace(profile.calls, profile.steps))
        parts.append(reduced(read_primitives(folder.profile(path)), traces[-1].steps))
    if not traces:
        return None
    every, primitives = Traces.together(traces), pd.concat(parts, ignore_index=True)
    records = [read_record(folder, path) for path in paths]
    return Logged(every, primitives, _roofs(every.steps, records), _flags(records))


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


def _paths(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches that left a graph."""
    found, graphs = [], []
    for path, profile in _profiles(folder, paths):
        graph = read_graph(folder.profile(path))
        if graph is not None and len(graph.nodes):
            found.append(path_traces(profile.calls, profile.steps, graph.nodes, graph.edges))
            graphs.append(graph)
    if not found:
        return dict.fromkeys(("paths", "nodes", "edges"))
    first = _of_each_lead(graphs)
    nodes, edges = ([getattr(graph, name) for graph in first] for name in ("nodes", "edges"))
    return {
        "paths": PathTraces.together(found),
        "nodes": pd.concat(nodes, ignore_index=True),
        "edges": pd.concat(edges, ignore_index=True),
    }


def _epochs(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches whose traces begin with the first record, and what is known of each trace."""
    about = [
        {"company": record["company"], "block": record["block"]}
        | {name: trace[name] for name in ("scene", "round", "epoch", "pair", "storage_bytes")}
        for record in (read_record(folder, path) for path in paths)
        for trace in record["traces"]
        if not trace["reason"]
    ]
    launches = ((profile.calls, profile.steps) for _, profile in _profiles(folder, paths))
    return {"epochs": per_launch(launches), "epochs_about": pd.DataFrame(about)}


def graph_nodes(folder: StudyFolder, paths: Sequence[str]) -> pd.DataFrame:
    """The nodes of each lead's graph, of the first of these launches that has one."""
    found = (read_graph(folder.profile(path)) for path in paths)
    first = _of_each_lead([graph for graph in found if graph is not None and len(graph.nodes)])
    return pd.concat([graph.nodes for graph in first], ignore_index=True) if first else frame([], GRAPH_NODES)


def _of_each_lead(graphs: Sequence[Graph]) -> list[Graph]:
    return list({str(graph.nodes["member"].iloc[0]): graph for graph in reversed(graphs)}.values())


def _profiles(folder: StudyFolder, paths: Iterable[str]) -> Iterator[tuple[str, Profile]]:
    """Launches, one at a time; what has no step is left out."""
    for path in paths:
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            yield path, profile


def _level(paths: Sequence[str], folder: StudyFolder, output: Path) -> float:
    """The level of verdicts: stricter where launches were added after their results were there."""
    companies = Counter(path.rpartition("/")[0] for path in paths)
    remember_profile_look(folder, _launches_before(output), max(companies.values(), default=0))
    return effect_level([*looks_before(folder), *profile_looks_before(folder)])


def _launches_before(output: Path) -> int:
    """How many launches the table has that is about to be replaced; 0 where there is none."""
    try:
        launches = pd.read_parquet(output / "operation_effects.parquet", columns=["launches"])["launches"]
    except (OSError, ValueError):
        return 0
    return int(launches.max()) if len(launches) else 0


def _roofs(steps: pd.DataFrame, records: Sequence[Mapping[str, object]]) -> Mapping[str, Roofs]:
    """The roofs of each lead: those of its launches alone, because leads have different CPUs."""
    measured: dict[str, list[dict[str, object]]] = {}
    members = dict(steps[["company", "member"]].drop_duplicates().itertuples(index=False, name=None))
    for record in records:
        if isinstance(roofs := record.get("roofs"), dict) and record.get("company") in members:
            measured.setdefault(members[record["company"]], []).append(roofs)
    return {member: Roofs.of(each) for member, each in measured.items()}


def _flags(records: Sequence[Mapping[str, object]]) -> list[str] | None:
    """The processor's flags that all launches agree on; None where some do not know them."""
    known = [record.get("flags") for record in records]
    sets = [set(flags) for flags in known if isinstance(flags, list)]
    return sorted(set.intersection(*sets)) if sets and len(sets) == len(known) else None
