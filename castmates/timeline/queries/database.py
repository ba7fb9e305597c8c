"""Opens traces as a database: their Parquet files stay where they are, and a query reads what it needs of them."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError
from castmates.results.columns.contract import Table
from castmates.results.columns.trace import GROUPS, GROUPS_FILE, PATHS, PATHS_FILE, TRACE_RECORD, TRACE_TABLES
from castmates.results.find import find_traces
from castmates.results.folder import StudyFolder
from castmates.results.traces import is_whole, trace_of, traces_there
from castmates.timeline.model import extent
from castmates.timeline.queries.asking import views
from castmates.timeline.tables import read_about

if TYPE_CHECKING:
    import duckdb


MEMORY = "1500MB"  # of tables; the process takes about 0.3 GB more. Beyond it, DuckDB goes on in temporary files
# Nothing is fetched, and no variable of this program is taken for a table.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
OPTIONAL: Mapping[str, Table] = {PATHS_FILE: PATHS, GROUPS_FILE: GROUPS}
HELD = ("recordings", "seen")  # a few rows that nearly every view needs: found once
SQL = {"str": "VARCHAR", "int64": "BIGINT", "Int64": "BIGINT", "float64": "DOUBLE"}
TRACES = {
    "trace": "VARCHAR", "study": "VARCHAR", "mix": "VARCHAR", "partition": "VARCHAR", "lead": "VARCHAR",
    "status": "VARCHAR", "platform": "VARCHAR", "host": "VARCHAR", "kernel": "VARCHAR", "cpu_model": "VARCHAR",
    "started": "VARCHAR", "folder": "VARCHAR", "origin_ns": "BIGINT", "end_ns": "BIGINT",
}  # fmt: skip
SOURCES = {
    "trace": "VARCHAR", "source": "VARCHAR", "events": "BIGINT", "lost": "BIGINT", "bytes": "BIGINT",
    "alignment_ns": "DOUBLE", "reason": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True)
class TraceFolder:
    """A trace: its name, and where its files are."""

    name: str
    path: Path


@contextmanager
def database(traces: Sequence[TraceFolder]) -> Iterator["duckdb.DuckDBPyConnection"]:
    """The views of these traces. Nothing is written but temporary files, which are removed at the end."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="castmates-query-") as folder:
        settings = {**SETTINGS, "memory_limit": MEMORY, "temp_directory": folder}
        with duckdb.connect(config=settings) as connection:
            connection.execute("CREATE SCHEMA files")
            _about(connection, traces)
            for name in TRACE_TABLES:
                connection.execute(f"CREATE VIEW files.{name} AS {_of_files(name, traces)}")
            for file, columns in OPTIONAL.items():
                connection.execute(f"CREATE VIEW files.{columns.name} AS {_optional(traces, file, columns)}")
            for view in views().values():
                kind = "TABLE" if view.name in HELD else "VIEW"
                connection.execute(f"CREATE {kind} {view.name} AS {view.sql}")
            yield connection


def _of_files(name: str, traces: Sequence[TraceFolder]) -> str:
    """One table of all traces; a filter by trace or by columns leaves the files of the others unread."""
    row, numbered = (", file_row_number AS row", ", file_row_number=true") if name == "intervals" else ("", "")
    columns = ", ".join(TRACE_TABLES[name])
    return " UNION ALL ".join(
        f"SELECT {_text(trace.name)} AS trace, {columns}{row} "
        f"FROM read_parquet({_text(f'{trace.path / name}.parquet')}{numbered})"
        for trace in traces
    )


def _optional(traces: Sequence[TraceFolder], file: str, table: Table) -> str:
    """A table that some traces have."""
    empty = ", ".join(f"NULL::{SQL[kind]} AS {_quoted(name)}" for name, kind in table.items())
    columns = ", ".join(map(_quoted, table))
    there = [
        f"SELECT {_text(trace.name)} AS trace, {columns} FROM read_parquet({_text(str(trace.path / file))})"
        for trace in traces
        if (trace.path / file).is_file()
    ]
    return " UNION ALL ".join([f"SELECT NULL::VARCHAR AS trace, {empty} WHERE false", *there])


def _quoted(name: str) -> str:
    return f'"{name}"'


def _about(connection: "duckdb.DuckDBPyConnection", traces: Sequence[TraceFolder]) -> None:
    """The small tables: what the records of the traces hold, and where each trace begins and ends."""
    rows, sources = [], []
    for trace in traces:
        record = read_about(trace.path)
        begin, end = extent(trace.path)
        known = {name: str(record.get(name) or "") for name in TRACES}
        numbers = {"origin_ns": begin, "end_ns": end}
        rows.append(known | {"trace": trace.name, "folder": str(trace.path)} | numbers)
        sources += [{"trace": trace.name} | _source(each) for each in record.get("sources") or ()]
    for name, columns, content in (("traces", TRACES, rows), ("sources", SOURCES, sources)):
        connection.execute(
            f"CREATE TABLE files.{name} ({', '.join(f'{each} {kind}' for each, kind in columns.items())})"
        )
        if content:
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO files.{name} VALUES ({marks})", [[row[each] for each in columns] for row in content]
            )


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    events = source.get("events")
    count = sum(events.values()) if isinstance(events, Mapping) else events
    return {
        "source": str(source.get("name", "")),
        "events": count,
        "lost": source.get("lost"),
        "bytes": source.get("bytes"),
        "alignment_ns": source.get("alignment_ns"),
        "reason": source.get("reason") or "",
    }


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


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
