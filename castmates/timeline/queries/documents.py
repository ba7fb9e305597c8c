"""The views and the named queries: a .sql file each, whose comment describes it.

A view begins with what it has, and lists its columns: `-- name: meaning`. A named query begins with its title, then
what it shows, then its parameters: `-- name [value if left out]: meaning`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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
