"""The launches under oneDNN's log -> the study's tables of primitives and instructions; what is known of work.

Times under the log enter no other table than the roofline, and there no row of other launches, because the log costs
time. The work that primitives show is that of an operation in all launches; of others it is estimated from the graph.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from castmates.analysis.operations.isa_use import isa_use
from castmates.analysis.operations.known_work import estimated_work, known_work, logged_work, with_known_work
from castmates.analysis.operations.per_trace import Traces, per_trace
from castmates.analysis.operations.primitives import reduced, summarise_primitives
from castmates.analysis.operations.roofline import Roofs, estimated_roofline, roofline
from castmates.analysis.operations.summary import summarise
from castmates.results.folder import StudyFolder
from castmates.results.profiles import read_primitives, read_profile, read_record

Table = Callable[[], pd.DataFrame]


@dataclass(frozen=True)
class Logged:
    """The launches under oneDNN's log."""

    traces: Traces
    primitives: pd.DataFrame
    roofs: Mapping[str, Roofs]
    flags: Sequence[str] | None

    @property
    def work(self) -> pd.DataFrame:
        """How much work operations do in a call, as far as primitives show it."""
        return logged_work(self.primitives, self.traces)

    def tables(self) -> Mapping[str, Table]:
        """What makes each table of these launches alone."""
        return {
            "primitive_summary": lambda: summarise_primitives(self.primitives, self.traces.steps),
            "isa_use": lambda: isa_use(self.traces, self.primitives, self.flags),
        }


def read_logged(folder: StudyFolder, paths: Sequence[str]) -> Logged | None:
    """Read the launches at these paths; None without any."""
    traces, parts = [], []
    for path in paths:
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            traces.append(per_trace(profile.calls, profile.steps))
            parts.append(reduced(read_primitives(folder.profile(path)), traces[-1].steps))
    if not traces:
        return None
    every, primitives = Traces.together(traces), pd.concat(parts, ignore_index=True)
    records = [read_record(folder, path) for path in paths]
    return Logged(every, primitives, _roofs(every.steps, records), _flags(records))


def work_tables(logged: Logged | None, usual: Traces | None, nodes: pd.DataFrame) -> Mapping[str, Table]:
    """The tables that tell work: of operations in `usual` launches, and of all under roofs; `nodes` are of graphs."""
    work = known_work(*([logged.work] if logged else []), estimated_work(nodes))
    tables: dict[str, Table] = {}
    if usual is not None:
        tables["operation_summary"] = lambda: with_known_work(summarise(usual), work)
    return tables | {"roofline": lambda: _roofline(logged, usual, work)}


def _roofline(logged: Logged | None, usual: Traces | None, work: pd.DataFrame) -> pd.DataFrame:
    parts = []
    if logged is not None:
        parts.append(roofline(logged.primitives, logged.traces.steps, logged.traces.compared, logged.roofs))
    if usual is not None:
        parts.append(estimated_roofline(usual, work, usual.compared, logged.roofs if logged else {}))
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


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
