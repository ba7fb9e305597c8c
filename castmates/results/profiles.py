"""Reads what profile launches left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError
from castmates.results.columns.operations import PROFILE_RECORD, PROFILE_TABLES
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json
from castmates.study.spec import Plan

if TYPE_CHECKING:
    import pandas as pd


def measured_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """The paths of the plan's profile launches that are over."""
    return [each.path for each in plan.profiles if (folder.profile(each.path) / PROFILE_RECORD).is_file()]


def missing_profiles(plan: Plan, folder: StudyFolder) -> list[str]:
    """The paths of those that are still to be made."""
    there = set(measured_profiles(plan, folder))
    return [each.path for each in plan.profiles if each.path not in there]


def read_record(folder: StudyFolder, path: str) -> dict[str, Any]:
    """What a profile launch records of itself; nothing where it is not there."""
    return read_json(folder.profile(path) / PROFILE_RECORD)


def profile_records(plan: Plan, folder: StudyFolder) -> list[dict[str, Any]]:
    """What each of them records of itself."""
    return [read_record(folder, path) for path in measured_profiles(plan, folder)]


def forget_failed(folder: StudyFolder) -> Iterator[tuple[str, Path]]:
    """Discard profile launches that failed, or lack a trace, so that the next sweep makes them anew; yield why, where."""
    for file in sorted(folder.profiles.glob(f"*/*/{PROFILE_RECORD}")):
        record = read_json(file)
        traces = [trace["reason"] for trace in record.get("traces", ()) if trace.get("reason")]
        if record.get("status") != "measured" or traces:
            file.unlink()
            yield str(record.get("reason") or next(iter(traces), "no record of a profile launch")), file.parent


@dataclass(frozen=True)
class Profile:
    """The tables of one profile launch; names of calls come as categories."""

    calls: "pd.DataFrame"
    steps: "pd.DataFrame"
    memory: "pd.DataFrame"


def read_profile(place: Path) -> Profile:
    """Read them."""
    return Profile(*(_read(place / f"{name}.parquet", list(columns)) for name, columns in PROFILE_TABLES.items()))


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
