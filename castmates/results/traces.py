"""Reads which traces a study has, and what they record of themselves."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json, refuse_links
from castmates.study.scenes import under
from castmates.study.spec import UNMANAGED, Launch, Plan
from castmates.study.trace_launches import identity_of, meant, trace_name

PATHS = "paths"  # what the critical paths of recordings are of
TRACES = "traces/"  # before the name of a trace, where paths of launches stand too
MEASURED = "measured"
WHOLE = (MEASURED, "imported")  # the status of traces with something to read; a launch that failed has another


def is_whole(record: Mapping[str, Any]) -> bool:
    """Whether a trace is one to read; what failed may have tables too."""
    return record.get("status", MEASURED) in WHOLE


def lacking(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a trace has not, by its record: sentences, and the sources that each is about; none where it may be any."""
    return {**dict(record.get("missing") or {}), **{words: [PATHS] for words in without_path(record)}}


def without_path(record: Mapping[str, Any]) -> Iterator[str]:
    """A sentence on each recording that has no critical path."""
    paths = dict(record.get("paths") or {})
    for each in paths.get("recordings") or ():
        if why := str(each.get("reason") or "").rstrip("."):
            yield f"Critical paths: {each['scene']}, recording {each['recording']}: {why}."
    if "recordings" not in paths and (why := str(paths.get("reason") or "").rstrip(".")):
        yield f"Critical paths: {why}."


def read_record(folder: StudyFolder, name: str) -> dict[str, Any]:
    """What a trace records of itself; nothing where it is not there."""
    return read_json(folder.trace(name) / TRACE_RECORD)


def is_made(launch: Launch, folder: StudyFolder) -> bool:
    """Whether the trace of a launch is there; one that was planned otherwise, or failed, counts for nothing."""
    record = read_record(folder, trace_name(launch))
    return record.get("identity") == identity_of(launch) and record.get("status") == MEASURED


def missing_traces(plan: Plan, folder: StudyFolder) -> list[Launch]:
    """The trace launches that are still to be made."""
    return [launch for launch in plan.traces if not is_made(launch, folder)]


def traces_there(folder: StudyFolder) -> list[str]:
    """The names of all traces that are there; a folder that bears another name than its record's mix is none."""
    files = sorted(folder.traces.glob(f"*/{TRACE_RECORD}"))
    return [file.parent.name for file in files if _own_name(file) in ("", file.parent.name)]


def _own_name(record_file: Path) -> str:
    """The name that a trace has by its record; "" where the record has none, which whoever reads it reports."""
    try:
        record = read_json(record_file)
    except CastmatesError:
        return ""
    return under(str(record["mix"]), str(record.get("partition") or UNMANAGED)) if record.get("mix") else ""


def trace_of(there: Sequence[str], words: str, where: Path) -> str:
    """The trace that is meant among those that are there: by its name, or by words that only one has.

    MIX@PARTITION is the trace under a partition; without one, the trace without a partition comes first.
    """
    if words in there:
        return words
    mix, at, partition = words.partition("@")
    found: list[str] = []
    for parts in [partition] if at else ["", *sorted({name.partition("@")[2] for name in there} - {""})]:
        mixes = [name.partition("@")[0] for name in there if name.partition("@")[2] == parts]
        found += [f"{one}@{parts}" if parts else one for one in meant(mix, mixes)]
        if found and not parts:
            break
    if len(found) == 1:
        return found[0]
    if found:
        raise CastmatesError(f"{where}: '{words}' may mean several traces: {', '.join(found)}; give one of them.")
    known = f"there are traces of {', '.join(there)}" if there else "there is none"
    raise CastmatesError(f"{where}: there is no trace of {words} ({known}); make one with `castmates trace record`.")


def trace_folder(folder: StudyFolder, words: str) -> Path:
    """The folder of the trace of a study that is meant."""
    return folder.trace(trace_of(traces_there(folder), words, folder.path))


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
