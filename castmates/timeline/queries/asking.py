"""Asks traces: one statement of SQL that reads, or a named query with its parameters.

Views and named queries are a .sql file each, whose comment describes it. A view begins with what it has, and lists its
columns: `-- name: meaning`. A named query begins with its title, then what it shows, then its parameters:
`-- name [value if left out]: meaning`.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


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
