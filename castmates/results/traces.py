"""Reads which traces a study has, and what they record of themselves."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.folder import StudyFolder
from castmates.results.links import refuse_links
from castmates.results.records import read_json
from castmates.study.spec import Block, Plan
from castmates.study.trace_launches import identity_of, trace_name

TRACES = "traces/"  # before the name of a trace, where paths of blocks stand too
MEASURED = "measured"
WHOLE = (MEASURED, "imported")  # the status of traces with something to read; a launch that failed has another


def is_whole(record: Mapping[str, Any]) -> bool:
    """Whether a trace is one to read; what failed may have tables too."""
    return record.get("status", MEASURED) in WHOLE


def read_record(folder: StudyFolder, name: str) -> dict[str, Any]:
    """What a trace records of itself; nothing where it is not there."""
    return read_json(folder.trace(name) / TRACE_RECORD)


def is_made(launch: Block, folder: StudyFolder) -> bool:
    """Whether the trace of a launch is there; one that was planned otherwise, or failed, counts for nothing."""
    record = read_record(folder, trace_name(launch))
    return record.get("identity") == identity_of(launch) and record.get("status") == MEASURED


def missing_traces(plan: Plan, folder: StudyFolder) -> list[Block]:
    """The trace launches that are still to be made."""
    return [launch for launch in plan.traces if not is_made(launch, folder)]


def traces_there(folder: StudyFolder) -> list[str]:
    """The names of all traces that are there."""
    return sorted(file.parent.name for file in folder.traces.glob(f"*/{TRACE_RECORD}"))


def room_for(folder: Path) -> int:
    """How many bytes are free on the disk of a folder that may not be there yet."""
    return shutil.disk_usage(next(each for each in (folder, *folder.absolute().parents) if each.is_dir())).free


def forget_failed(folder: StudyFolder) -> Iterator[tuple[str, Path]]:
    """Discard traces whose launch failed: the next sweep makes them anew; yield why, and where."""
    refuse_links(folder)
    for file in sorted(folder.traces.glob(f"*/{TRACE_RECORD}")):
        record = read_json(file)
        if not record or not is_whole(record):
            try:
                file.unlink()
            except OSError as problem:
                raise CastmatesError(
                    f"{file} cannot be removed ({reason(problem)}): give write access there, and run the same command "
                    "again."
                ) from None
            yield str(record.get("reason") or "no record of a trace"), file.parent
