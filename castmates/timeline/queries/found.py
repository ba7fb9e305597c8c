"""Which traces are meant: those of a study, of one of its mixes, or a folder that has one."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.results.columns.trace import TRACE_RECORD, TRACE_TABLES
from castmates.results.find import find_traces
from castmates.results.folder import StudyFolder
from castmates.results.traces import is_whole, trace_of, traces_there
from castmates.timeline.queries.database import TraceFolder
from castmates.timeline.span import extent
from castmates.timeline.tables import read_about


def traces_of(where: Path, mix: str = "") -> list[TraceFolder]:
    """The traces of a study (its file, or folder), or the one in this folder; `mix` chooses by a pattern, or words."""
    if not where.exists():
        raise CastmatesError(
            f"{where}: nothing has this name; give a study file, a folder results/<study>, or the folder of a trace."
        )
    if (where / TRACE_RECORD).is_file():
        return [TraceFolder(where.resolve().name, where)]
    if any((where / f"{name}.parquet").is_file() for name in TRACE_TABLES):
        read_about(where)  # which names the record that is not there
    if where.is_dir() and any(where.glob(f"*/{TRACE_RECORD}")):
        found = [TraceFolder(file.parent.name, file.parent) for file in sorted(where.glob(f"*/{TRACE_RECORD}"))]
    else:
        found = of_study(find_traces(where)[0])
        if not found:
            raise CastmatesError(
                f"{where}: this study has no trace yet; make one with `castmates trace record {where} MIX`."
            )
    chosen = [trace for trace in found if _is_meant(trace.name, mix)]
    if not chosen:
        name = trace_of([trace.name for trace in found], mix, where)
        return [trace for trace in found if trace.name == name]
    return chosen


def readable(traces: Iterable[TraceFolder]) -> tuple[list[TraceFolder], list[str]]:
    """Those that can be read, and a sentence on each of the others: its launch failed, or a file of it is damaged."""
    found: list[TraceFolder] = []
    left_out: list[str] = []
    for trace in traces:
        if problem := problem_of(trace):
            left_out.append(problem)
        else:
            found.append(trace)
    return found, left_out


def problem_of(trace: TraceFolder) -> str:
    """A sentence on why a trace is left out; "" where it can be read."""
    try:
        record = read_about(trace.path)
        if not is_whole(record):
            return (
                f"The trace of {trace.name} failed: {str(record.get('reason') or 'no reason is recorded').rstrip('.')}."
            )
        extent(trace.path)
    except CastmatesError as problem:
        return f"The trace of {trace.name} cannot be read: {problem}"
    return ""


def of_study(folder: StudyFolder) -> list[TraceFolder]:
    """All traces of a study."""
    return [TraceFolder(name, folder.trace(name)) for name in traces_there(folder)]


def _is_meant(name: str, mix: str) -> bool:
    return not mix or name == mix or name.partition("@")[0] == mix or fnmatchcase(name, mix)
