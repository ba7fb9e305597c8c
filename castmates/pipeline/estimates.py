"""Makes the tables of a rule: each by the function that its declaration names, from what its parameters name.

A parameter names a fact (what launches left, what the study asks for) or another table of the same rule. A parameter
without a default is needed: where there is no such fact, the table is empty.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.dataflow.summary import PathTraces, path_traces
from castmates.analysis.effects.pooling import joined_tables
from castmates.analysis.effects.verdicts import effect_level
from castmates.analysis.operations.per_trace import Traces, per_launch, per_step, per_trace
from castmates.analysis.operations.primitives import (
    Roofs,
    estimated_work,
    known_work,
    logged_work,
    reduced,
    traced_work,
)
from castmates.analysis.timeline.seen import Trace
from castmates.errors import CastmatesError
from castmates.parallel import side_by_side
from castmates.results.asked import looks_before, profile_looks_before, remember_profile_look
from castmates.results.columns.contract import Table
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from castmates.results.profiles import (
    Profile,
    first_epoch_profiles,
    logged_profiles,
    profile_records,
    read_graph,
    read_primitives,
    read_profile,
    read_record,
    read_work,
    usual_profiles,
)
from castmates.results.tables import tables_of, write_table, written_together
from castmates.study.spec import Plan
from castmates.timeline.model import extent
from castmates.timeline.queries.database import of_study, readable
from castmates.timeline.tables import read


class Estimates:
    """Facts by their names, and the tables that a rule makes of them, each of which is made once.

    A fact that is read each time it is asked for, as what does not fit into memory, is a `partial`. Parts of a study
    that are never pooled have their own facts: a table is made of each, and all are joined. An estimate that needs what
    the whole study alone has is made once.
    """

    def __init__(self, rule: str, facts: Mapping[str, Any], parts: Sequence[Mapping[str, Any]] = ()) -> None:
        self.rule = rule
        self._facts, self._all_facts, self._parts = facts, (facts, *parts), [Estimates(rule, part) for part in parts]
        self._estimated = {name: table for name, table in written_by(rule).items() if name not in facts}
        self._made: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (a fact is anything)
        """A fact or a table."""
        if name not in self._estimated:
            fact = self._facts[name]
            return fact() if isinstance(fact, partial) else fact
        if name not in self._made:
            self._made |= self._make(self._estimated[name])
        return self._made[name]

    def knows(self, name: str) -> bool:
        """Whether there is such a fact or table."""
        return name in self._estimated or name in self._facts

    def together(self, names: Collection[str]) -> list[set[str]]:
        """The tables, those together of which one is made from another; first those for which facts are read."""
        read = {name for facts in self._all_facts for name, fact in facts.items() if isinstance(fact, partial)}
        groups: list[set[str]] = []
        for name in names:
            group = {name} | self._sources(name).intersection(self._estimated)
            for other in [each for each in groups if each & group]:
                groups.remove(other)
                group |= other
            groups.append(group)
        return sorted(groups, key=lambda group: read.isdisjoint(set().union(*map(self._sources, group))))

    def _sources(self, name: str) -> set[str]:
        """The facts and tables that a table is made of, and what is made at once with it."""
        if name not in self._estimated:
            return {name}
        table = self._estimated[name]
        twins = {other.name for other in self._estimated.values() if other.estimate == table.estimate}
        return twins.union(*(self._sources(each.name) for each in parameters(table)))

    def _make(self, table: Table) -> dict[str, pd.DataFrame]:
        names = {each.name: each.default is each.empty for each in parameters(table)}  # whether each is needed
        if self._parts and all(self._parts[0].knows(name) for name, needed in names.items() if needed):
            return {table.name: joined_tables([part[table.name] for part in self._parts])}
        given = {name: self[name] for name, needed in names.items() if needed or self.knows(name)}
        if any(given[name] is None for name, needed in names.items() if needed):
            return {table.name: frame([], table)}
        made = function_of(table)(**given)
        several = made if isinstance(made, Mapping) else {table.name: made}
        return {name: _as_declared(each, self._estimated[name]) for name, each in several.items()}


def function_of(table: Table) -> Callable[..., Any]:
    """The estimate of a table."""
    module, _, name = table.estimate.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"castmates.analysis.{module}"), name)
    return function


def parameters(table: Table) -> Sequence[Parameter]:
    """What its estimate asks for, by name."""
    return list(signature(function_of(table)).parameters.values())


def _as_declared(made: pd.DataFrame | list[Mapping[str, Any]], table: Table) -> pd.DataFrame:
    if isinstance(made, list):
        return frame(made, table)
    return made[list(table)].astype(dict(table)) if len(made) else frame([], table)


def write(estimates: Estimates, names: Collection[str], output: Path, jobs: int = 1) -> None:
    """Write these tables of a rule, so many at a time."""
    with written_together(output, estimates.rule) as made:
        groups = [sorted(group & {*names}) for group in estimates.together(names)]
        side_by_side({group[0]: partial(_write, estimates, group, made) for group in groups}, jobs)


def _write(estimates: Estimates, names: Collection[str], folder: Path) -> None:
    for name in names:
        write_table(estimates[name], folder / name)


# The traces of a study -> its tables of what they show.

TRACES_RULE = "estimate_traces"
READ = ("tracks", "intervals", "instants", "samples")  # of a timeline; stacks say nothing of waits


def write_trace_tables(folder: StudyFolder, output: Path) -> None:
    """Read every trace that is there, one at a time, and write all tables into `output`: all of them, or none."""
    write(Estimates(TRACES_RULE, {"timelines": _traces(folder)}), written_by(TRACES_RULE), output)


def _traces(folder: StudyFolder) -> Iterator[Trace]:
    """Those that can be read; what failed or is damaged is named, and stops nobody: the page names it too."""
    found, left_out = readable(of_study(folder))
    for each in found:
        try:
            timeline = read(each.path, *READ)
            tables = timeline.tracks, timeline.intervals, timeline.instants, timeline.samples
            yield Trace(*tables, timeline.about, each.name, extent(each.path)[0])
        except CastmatesError as problem:  # beyond the heads of its files
            left_out.append(f"The trace of {each.name} cannot be read: {problem}")
    for sentence in left_out:
        print(sentence, file=sys.stderr)


# The profile launches of a plan: the facts of which the study's tables of operations are made.

OPERATIONS_RULE = "estimate_operations"
_GRAPH = ("nodes", "edges")
Facts = dict[str, Any]  # by the names that estimates have for them


def write_operation_tables(plan: Plan, folder: StudyFolder, margin: float, output: Path) -> None:
    """Read every profile launch of the plan, one at a time, and write all tables into `output`."""
    paths = usual_profiles(plan, folder)
    logged, graphs = facts_of_logged(folder, logged_profiles(plan, folder)), facts_of_graphs(folder, paths)
    known = work_of(logged, graphs, _shown(folder, paths))
    facts = {"margin": margin, "level": _level(paths, folder), "work": known}
    usual = _usual(folder, paths)
    facts |= usual | _epochs(folder, first_epoch_profiles(plan, folder)) | logged | graphs
    facts["roofs"] = _roofs([usual["steps"], logged["logged"] and logged["logged"].steps], folder, plan)
    write(Estimates(OPERATIONS_RULE, facts), written_by(OPERATIONS_RULE, tables_of(plan, folder)), output)


def work_of(logged: Facts, graphs: Facts, traced: pd.DataFrame | None = None) -> pd.DataFrame:
    """How much work operations do in a call, as far as primitives, graphs or traces show it."""
    shown = [] if logged["logged"] is None else [logged_work(logged["primitives"], logged["logged"])]
    shown += [] if graphs["nodes"] is None else [estimated_work(graphs["nodes"])]
    return known_work(*shown, *([] if traced is None else [traced_work(traced)]))


def _shown(folder: StudyFolder, paths: Sequence[str]) -> pd.DataFrame | None:
    """The work that traces show of their calls."""
    parts = [part for path in paths if (part := read_work(folder.profile(path))) is not None and len(part)]
    return pd.concat(parts, ignore_index=True) if parts else None


def facts_of_logged(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches under oneDNN's log."""
    traces, parts = [], []
    for path, profile in _profiles(folder, paths):
        traces.append(per_trace(profile.calls, profile.steps))
        parts.append(reduced(read_primitives(folder.profile(path)), traces[-1].steps))
    if not traces:
        return {"logged": None, "primitives": None, "flags": None}
    every, primitives = Traces.together(traces), pd.concat(parts, ignore_index=True)
    records = [read_record(folder, path) for path in paths]
    return {"logged": every, "primitives": primitives, "flags": _flags(records)}


def _usual(folder: StudyFolder, paths: Sequence[str]) -> Facts:
    """The facts of launches that show usual steps."""
    traces: list[Traces] = []
    rows: dict[str, list[pd.DataFrame]] = {"steps": [], "memory": [], "stages": [], "device_calls": [], "in_steps": []}
    for _, profile in _profiles(folder, paths):
        traces.append(per_trace(profile.calls, profile.steps))
        for name, tables in rows.items():
            tables.append(per_step(profile.calls, profile.steps) if name == "in_steps" else getattr(profile, name))
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
        return dict.fromkeys(("paths", *_GRAPH))
    first = {str(graph.nodes["member"].iloc[0]): graph for graph in reversed(graphs)}.values()
    nodes, edges = (pd.concat([getattr(graph, name) for graph in first], ignore_index=True) for name in _GRAPH)
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


def _roofs(steps: Iterable[pd.DataFrame | None], folder: StudyFolder, plan: Plan) -> Mapping[str, Roofs]:
    """The roofs of each lead: those of its launches alone, because leads have different CPUs."""
    measured: dict[str, list[dict[str, object]]] = {}
    known = [each[["cohort", "member"]].drop_duplicates() for each in steps if each is not None]
    members = {cohort: member for each in known for cohort, member in each.itertuples(index=False, name=None)}
    for record in profile_records(plan, folder):
        if isinstance(roofs := record.get("roofs"), dict) and record.get("cohort") in members:
            measured.setdefault(members[record["cohort"]], []).append(roofs)
    return {member: Roofs.of(each) for member, each in measured.items()}


def _flags(records: Sequence[Mapping[str, object]]) -> list[str] | None:
    """The processor's flags that all launches agree on; None where some do not know them."""
    known = [record.get("flags") for record in records]
    sets = [set(flags) for flags in known if isinstance(flags, list)]
    return sorted(set.intersection(*sets)) if sets and len(sets) == len(known) else None
