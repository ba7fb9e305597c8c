"""Which traces are meant: those of a study, of one of its mixes, or a folder that has one."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.results.columns.trace import TRACE_RECORD, TRACE_TABLES
from castmates.results.find import find_traces
from castmates.results.folder import StudyFolder
from castmates.results.traces import trace_of, traces_there
from castmates.timeline.queries.database import TraceFolder


def traces_of(where: Path, mix: str = "") -> list[TraceFolder]:
    """The traces of a study (its file, or folder), or the one in this folder; `mix` chooses by a pattern, or words."""
    if (where / TRACE_RECORD).is_file():
        return [TraceFolder(where.resolve().name, where)]
    if where.is_dir() and any(where.glob(f"*/{TRACE_RECORD}")):
        found = [TraceFolder(file.parent.name, file.parent) for file in sorted(where.glob(f"*/{TRACE_RECORD}"))]
    else:
        found = list(_of_study(find_traces(where)[0]))
        if not found:
            raise CastmatesError(f"{where}: this study has no trace yet; make one with `castmates trace {where} MIX`.")
    chosen = [trace for trace in found if _is_meant(trace.name, mix)]
    if not chosen:
        name = trace_of([trace.name for trace in found], mix, where)
        return [trace for trace in found if trace.name == name]
    return chosen


def readable(folder: StudyFolder) -> list[TraceFolder]:
    """The traces of a study whose tables are there."""
    return [trace for trace in _of_study(folder) if has_tables(trace)]


def has_tables(trace: TraceFolder) -> bool:
    """Whether a trace has its tables; one whose launch failed before it recorded has a record alone."""
    return all((trace.path / f"{name}.parquet").is_file() for name in TRACE_TABLES)


def _of_study(folder: StudyFolder) -> Iterator[TraceFolder]:
    return (TraceFolder(name, folder.trace(name)) for name in traces_there(folder))


def _is_meant(name: str, mix: str) -> bool:
    return not mix or name == mix or name.partition("@")[0] == mix or fnmatchcase(name, mix)
