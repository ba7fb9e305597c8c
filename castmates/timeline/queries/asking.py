"""Asks traces: one statement of SQL that reads, or a named query with its parameters.

Views and named queries are a .sql file each, whose comment describes it. A view begins with what it has, and lists its
columns: `-- name: meaning`. A named query begins with its title, then what it shows, then its parameters:
`-- name [value if left out]: meaning`.
"""

import difflib
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.files import replace, writing

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from rich.console import Console

    Parts = Iterator[pa.RecordBatch]


PARAMETER = re.compile(r"(\w+) \[(.*)\]: (.*)")
COLUMN = re.compile(r"(\w+): (.*)")


@dataclass(frozen=True)
class View:
    """A view: its name, what its rows are, its columns with their meanings, and its SQL."""

    name: str
    about: str
    columns: Mapping[str, str]
    sql: str


@dataclass(frozen=True)
class Parameter:
    """What a named query can be asked for."""

    name: str
    usual: str  # if it is left out
    about: str


@dataclass(frozen=True)
class Named:
    """A named query."""

    name: str
    title: str
    about: str
    parameters: tuple[Parameter, ...]
    sql: str


@cache
def views() -> dict[str, View]:
    """All views, by name; none is before one that it uses."""
    found = {name: _view(name, text) for name, text in _texts("views")}
    ordered: dict[str, View] = {}

    def add(name: str) -> None:
        if name not in ordered:
            for other in found:
                if other != name and re.search(rf"\b(FROM|JOIN) {other}\b", found[name].sql):
                    add(other)
            ordered[name] = found[name]

    for name in found:
        add(name)
    return ordered


@cache
def named() -> dict[str, Named]:
    """All named queries, by name."""
    return {name: _named(name, text) for name, text in _texts("named")}


def _texts(folder: str) -> Iterator[tuple[str, str]]:
    there = (file for file in (files("castmates.timeline.queries") / folder).iterdir() if file.name.endswith(".sql"))
    for file in sorted(there, key=lambda file: file.name):
        yield file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")


def _view(name: str, text: str) -> View:
    head, sql = _parted(text)
    columns = {found[1]: found[2] for line in head if (found := COLUMN.fullmatch(line))}
    about = [line for line in head if line and not COLUMN.fullmatch(line)]
    return View(name, " ".join(about), columns, sql)


def _named(name: str, text: str) -> Named:
    head, sql = _parted(text)
    parameters = tuple(Parameter(*found.groups()) for line in head if (found := PARAMETER.fullmatch(line)))
    about = [line for line in head[1:] if line and not PARAMETER.fullmatch(line)]
    return Named(name, head[0], " ".join(about), parameters, sql)


def _parted(text: str) -> tuple[list[str], str]:
    """The lines of the comment at the top, and the SQL."""
    lines = text.splitlines()
    last = next(place for place, line in enumerate(lines) if not line.startswith("--"))
    return [line.removeprefix("--").strip() for line in lines[:last]], "\n".join(lines[last:]).strip()


ROWS = 100_000  # of a part
READS = {"SELECT", "MULTI"}  # PIVOT is of the second kind
_WRITES = re.compile(r"\b(create|insert|update|delete|drop|alter|copy|attach|install|load|export|import|call)\b", re.I)


def ask(
    connection: "duckdb.DuckDBPyConnection", sql: str, values: Mapping[str, str] | None = None
) -> "pa.RecordBatchReader":
    """The answer, part by part; a mistake in the SQL is one sentence."""
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise CastmatesError(f"the SQL has {len(statements)} statements, expected one.")
        kind = statements[0].type.name
        if kind not in READS or (kind == "MULTI" and _WRITES.search(sql)):
            raise CastmatesError(
                f"the SQL begins with {first_word(sql)}, expected a query, which only reads: SELECT …."
            )
        return connection.sql(sql, params=dict(values) if values else None).to_arrow_reader(ROWS)
    except duckdb.Error as problem:
        raise CastmatesError(sentence(str(problem))) from None


def first_word(sql: str) -> str:
    """What a statement begins with."""
    words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL).split()
    return words[0].upper() if words else "nothing"


def sentence(message: str) -> str:
    """DuckDB's message with its hint as one sentence, without its drawing of the place, but with the place's words."""
    told, _, place = message.partition("\n\nLINE ")
    lines = [line.strip().rstrip(".!") for line in told.splitlines() if line.strip()]
    words = re.sub(r"^\w+ Error: ", "", "; ".join(lines))
    where = re.match(r"(\d+): (.*)\n( *)\^", place)
    near = ""
    if where:
        at = max(0, len(where[3]) - len(f"LINE {where[1]}: "))
        near = f" (line {where[1]}, at `{where[2][at : at + 30].strip()}`)"
    known = ", ".join(views())
    hint = f"; the views are {known}" if "Table with name" in words or "Catalog" in message[:8] else ""
    return f"the SQL cannot be answered: {words[:1].lower()}{words[1:]}{near}{hint}."


def query_of(name: str) -> Named:
    """A named query."""
    every = named()
    if name not in every:
        near = difflib.get_close_matches(name, every, 1)
        hint = f"did you mean {near[0]}" if near else f"there are {', '.join(every)}"
        raise CastmatesError(f"there is no named query '{name}'; {hint}.")
    return every[name]


def values_of(query: Named, given: Sequence[str]) -> dict[str, str]:
    """The values of its parameters, from texts such as member=lead@0."""
    values = {parameter.name: parameter.usual for parameter in query.parameters}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or name not in values:
            has = f"takes {', '.join(values)}" if values else "takes no parameter"
            raise CastmatesError(f"--set is '{each}', expected NAME=VALUE; the query {query.name} {has}.")
        if values[name].isdecimal() and not value.isdecimal():
            raise CastmatesError(f"--set is '{each}', expected a whole number, such as {name}={values[name]}.")
        values[name] = value
    return values


# Writes the answer of a query: a table for the terminal, CSV, JSON or Parquet, part by part.

SAME = ("trace", "scene", "member")  # above the table, where all rows have the same


class Answer:
    """What a query found, in parts of some rows."""

    def __init__(self, schema: "pa.Schema", parts: "Parts") -> None:
        self.schema, self.parts = schema, self._counted(parts)
        self.rows = 0  # that were taken

    def _counted(self, parts: "Parts") -> "Parts":
        for part in parts:
            self.rows += part.num_rows
            yield part


def cut(reader: "pa.RecordBatchReader", most: int) -> Answer:
    """The answer, of at most so many rows; 0 for all."""

    def some() -> "Parts":
        left = most
        for part in reader:
            if most and part.num_rows >= left:
                yield part.slice(0, left)
                return
            left -= part.num_rows
            yield part

    return Answer(reader.schema, some())


def write_table(console: "Console", reader: "pa.RecordBatchReader", most: int) -> int:
    """Print a table of at most so many rows, and whether there are more; return how many were printed."""
    from rich.table import Table

    rows: list[dict[str, Any]] = []
    more = False
    for part in reader:
        rows += part.to_pylist()
        if most and len(rows) > most:
            more = True
            break
    shown = rows[:most] if most else rows
    same = [
        name for name in SAME if name in reader.schema.names and len({row[name] for row in shown}) == 1 < len(shown)
    ]
    if same:
        console.print(
            "; ".join(f"{name} {shown[0][name]}" for name in same), style="dim", markup=False, highlight=False
        )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in [field for field in reader.schema if field.name not in same]:
        cells = [row[field.name] for row in shown]
        numbers = any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)
        table.add_column(field.name, justify="right" if numbers else "left", overflow="fold")
    for row in shown:
        table.add_row(*(cell_words(row[name]) for name in reader.schema.names if name not in same))
    console.print(table)
    if not rows:
        console.print("No rows.", style="dim")
    if more:
        console.print(f"{counted(most, 'row')}; there are more: --limit 0 shows all.", style="dim", highlight=False)
    return len(shown)


def cell_words(value: object) -> str:
    """A cell as a terminal shows it: numbers with what four digits of them tell."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        size = abs(value)
        return (
            f"{value:.0f}"
            if size >= 1000 or value == 0
            else f"{value:.{min(6, max(0, 3 - math.floor(math.log10(size))))}f}"
        )
    return str(value).replace("[", "\\[")


def write(answer: Answer, form: str, output: Path | None) -> None:
    """Write the answer to a file, whole or not at all, or to standard output."""
    if output is None:
        _FORMS[form](answer, sys.stdout.buffer)
        sys.stdout.flush()
        return
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        replace(output, partial(_into, answer, form))


def _into(answer: Answer, form: str, file: Path) -> None:
    with file.open("wb") as out:
        _FORMS[form](answer, out)


def _csv(answer: Answer, out: IO[bytes]) -> None:
    from pyarrow.csv import CSVWriter, WriteOptions

    with CSVWriter(out, answer.schema, write_options=WriteOptions(quoting_style="needed")) as writer:
        for part in answer.parts:
            writer.write_batch(part)


def _parquet(answer: Answer, out: IO[bytes]) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(out, answer.schema, compression="zstd") as writer:
        for part in answer.parts:
            writer.write_batch(part)


def _json(answer: Answer, out: IO[bytes]) -> None:
    """A list with an object per row; a number that is none is null."""
    begin = b"[\n"
    for part in answer.parts:
        for row in part.to_pylist():
            plain = {name: _plain(value) for name, value in row.items()}
            out.write(begin + json.dumps(plain, ensure_ascii=False, default=str).encode())
            begin = b",\n"
    out.write(b"[]\n" if begin == b"[\n" else b"\n]\n")


def _text(answer: Answer, out: IO[bytes]) -> None:
    """A table as a terminal shows it."""
    import io

    import pyarrow as pa
    from rich.console import Console

    text = io.StringIO()
    write_table(Console(file=text, width=1000), pa.RecordBatchReader.from_batches(answer.schema, answer.parts), 0)
    out.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()).encode() + b"\n")


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_FORMS = {"csv": _csv, "parquet": _parquet, "json": _json, "table": _text}
