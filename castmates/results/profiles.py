"""Reads what profile launches left."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.dataflow import GRAPH_EDGES, GRAPH_NODES
from castmates.results.columns.operations import OPERATION_WORK, PROFILE_RECORD, PROFILE_TABLES
from castmates.results.columns.primitives import PRIMITIVES
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json, refuse_links
from castmates.study.profile_launches import identity_of
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd

PROFILES = "profiles/"  # before the path of a profile launch, where those of launches stand too


def measured_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """The paths of the plan's profile launches that are over; one that was planned otherwise counts for nothing."""
    return [
        launch.path
        for launch in plan.profiles
        if read_record(folder, launch.path).get("identity") == identity_of(launch)
    ]


def analysed_profiles(plan: Plan, folder: StudyFolder) -> tuple[list[str], list[str]]:
    """The paths of those that are analysed together, and in sentences which are not.

    Left out are those of nodes that the study leaves out, and of other processors than most launches had: times of
    different processors are not put together.
    """
    records = {path: read_record(folder, path) for path in measured_profiles(plan, folder)}
    kept = {path: record for path, record in records.items() if record.get("host") not in plan.ignored_hosts}
    models = Counter(str(record.get("cpu_model")) for record in kept.values())
    model = models.most_common(1)[0][0] if models else ""
    chosen = [path for path, record in kept.items() if str(record.get("cpu_model")) == model]
    words = []
    if len(kept) < len(records):
        words.append(f"{counted(len(records) - len(kept), 'profile launch')} of nodes that are left out are not used.")
    if len(chosen) < len(kept):
        left = counted(len(kept) - len(chosen), "profile launch")
        words.append(f"Traces of {left} on other processors than {model} are not used.")
    return chosen, words


def usual_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """Those of `analysed_profiles` that show usual steps: not under oneDNN's log, and not of the first epoch."""
    records = {path: read_record(folder, path) for path in analysed_profiles(plan, folder)[0]}
    return [path for path, record in records.items() if not is_under_log(record) and not is_of_first_epoch(record)]


def logged_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """Those of `analysed_profiles` under oneDNN's log."""
    return [path for path in analysed_profiles(plan, folder)[0] if is_under_log(read_record(folder, path))]


def first_epoch_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """Those of `analysed_profiles` whose traces begin with the first record."""
    return [path for path in analysed_profiles(plan, folder)[0] if is_of_first_epoch(read_record(folder, path))]


def missing_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """The paths of those that are still to be made."""
    there = set(measured_profiles(plan, folder))
    return [each.path for each in plan.profiles if each.path not in there]


def read_record(folder: StudyFolder, path: str) -> dict[str, Any]:
    """What a profile launch records of itself; nothing where it is not there."""
    return read_json(folder.profile(path) / PROFILE_RECORD)


def records_there(folder: StudyFolder) -> list[dict[str, Any]]:
    """The records of all profile launches that are there, planned or not."""
    return [read_json(file) for file in _record_files(folder)]


def is_under_log(record: Mapping[str, Any]) -> bool:
    """Whether oneDNN logged its primitives in this launch: its times are compared with those of its like alone."""
    return bool(record.get("primitives"))


def is_of_first_epoch(record: Mapping[str, Any]) -> bool:
    """Whether the traces of this launch begin with the first record."""
    return bool(record.get("first_epoch"))


def read_primitives(place: Path) -> "pd.DataFrame":
    """The primitives that a launch under oneDNN's log left."""
    return _read(place / "primitives.parquet", list(PRIMITIVES))


def read_work(place: Path) -> "pd.DataFrame | None":
    """The work that traces of a launch show; None of launches from before there was such a table."""
    file = place / "operation_work.parquet"
    return _read(file, list(OPERATION_WORK)) if file.exists() else None


def profile_records(plan: Plan, folder: StudyFolder) -> list[dict[str, Any]]:
    """What each of them records of itself."""
    return [read_record(folder, path) for path in measured_profiles(plan, folder)]


def _record_files(folder: StudyFolder) -> list[Path]:
    return sorted(folder.profiles.glob(f"*/*/{PROFILE_RECORD}"))


def forget_failed(folder: StudyFolder) -> Iterator[tuple[str, Path]]:
    """Discard profile launches that failed or lack a trace: the next sweep makes them anew; yield why, and where."""
    refuse_links(folder)
    for file in _record_files(folder):
        record = read_json(file)
        traces = [each["reason"] for each in record.get("traces", ()) if each.get("reason") and not each.get("taken")]
        if record.get("status") != "measured" or traces:
            try:
                file.unlink()
            except OSError as problem:
                raise CastmatesError(
                    f"{file} cannot be removed ({reason(problem)}): give write access there, and run the same command "
                    "again."
                ) from None
            yield str(record.get("reason") or next(iter(traces), "no record of a profile launch")), file.parent


@dataclass(frozen=True)
class Profile:
    """The tables of one profile launch; names of calls come as categories."""

    calls: "pd.DataFrame"
    steps: "pd.DataFrame"
    memory: "pd.DataFrame"
    stages: "pd.DataFrame"
    device_calls: "pd.DataFrame"


def read_profile(place: Path) -> Profile:
    """Read them."""
    return Profile(*(_read(place / f"{name}.parquet", list(columns)) for name, columns in PROFILE_TABLES.items()))


@dataclass(frozen=True)
class Graph:
    """The graph that the lead of a profile launch left of its step."""

    nodes: "pd.DataFrame"
    edges: "pd.DataFrame"


def read_graph(place: Path) -> Graph | None:
    """Read it; None where the launch left none."""
    files = place / "graph_nodes.parquet", place / "graph_edges.parquet"
    if not all(file.exists() for file in files):
        return None
    return Graph(*(_read(file, list(columns)) for file, columns in zip(files, (GRAPH_NODES, GRAPH_EDGES), strict=True)))


def _read(file: Path, columns: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    try:
        return pd.read_parquet(file, columns=list(columns))
    except (OSError, ValueError) as problem:
        why = str(problem).splitlines()[0].rstrip(".")
        raise CastmatesError(
            f"{file}: this is no table of operations ({why}); remove {file.parent / PROFILE_RECORD}, and run the same "
            "command again: the launch is made anew."
        ) from None
