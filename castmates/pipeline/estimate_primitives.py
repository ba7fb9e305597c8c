"""The launches under oneDNN's log -> the study's tables of primitives, of instructions and of the roofline.

Their times enter no other table, because the log costs time.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from castmates.analysis.operations.effects import compared
from castmates.analysis.operations.isa_use import isa_use
from castmates.analysis.operations.per_trace import Traces, per_trace
from castmates.analysis.operations.primitives import reduced, summarise_primitives
from castmates.analysis.operations.roofline import Roofs, roofline
from castmates.results.folder import StudyFolder
from castmates.results.profiles import read_primitives, read_profile, read_record


def logged_tables(folder: StudyFolder, paths: Sequence[str]) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """What makes each table, from the launches at these paths; nothing without any."""
    traces, parts = [], []
    for path in paths:
        profile = read_profile(folder.profile(path))
        if len(profile.steps):
            traces.append(per_trace(profile.calls, profile.steps))
            parts.append(reduced(read_primitives(folder.profile(path)), traces[-1].steps))
    if not traces:
        return {}
    every, primitives = Traces.together(traces), pd.concat(parts, ignore_index=True)
    records = [read_record(folder, path) for path in paths]
    roofs = _roofs(every.steps, records)
    return {
        "primitive_summary": lambda: summarise_primitives(primitives, every.steps),
        "isa_use": lambda: isa_use(every, primitives, _flags(records)),
        "roofline": lambda: roofline(primitives, every.steps, compared(every), roofs),
    }


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
