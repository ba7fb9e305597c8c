"""Where commands print: a terminal with its width and colours, or a pipe, in which nothing is coloured or cut off."""

import codecs
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


WIDE = 1000  # letters of a line that is not for a terminal


def console() -> "Console":
    """As wide as the terminal, or as COLUMNS asks for."""
    from castmates.terminal.console import SafeConsole

    own = SafeConsole()
    return own if own.is_terminal or "COLUMNS" in os.environ else SafeConsole(width=WIDE)


def show(*parts: object) -> None:
    """Print texts, tables and groups of them."""
    where = console()
    if where.is_terminal:
        where.print(*parts, sep="\n")
        return
    with where.capture() as held:
        where.print(*parts, sep="\n")
    # Tables fill the width that they have, which is no use in a file.
    typer.echo("\n".join(line.rstrip() for line in held.get().splitlines()))


def show_json(content: object) -> None:
    """Print data for scripts; a number that is none is null."""
    from castmates.files import as_json

    escaped = not has_all_letters()
    typer.echo(json.dumps(as_json(content), indent=2, ensure_ascii=escaped, allow_nan=False))


def rows_of(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a table as JSON has them."""
    return list(json.loads(table.to_json(orient="records", double_precision=15)))


# Letters that a terminal's encoding lacks: printed by others that mean the same, where Python would fail.

ERRORS = "castmates"  # the name of our error handler
INSTEAD = {
    "−": "-", "–": "-", "—": "-", "…": "...", "×": "x", "±": "+-", "≈": "~", "≤": "<=", "≥": ">=", "→": "->", "·": "|",
    "•": "*", "●": "*", "│": "|", "✓": "+", "✗": "x", "▼": "v", "▲": "^", "µ": "u", "“": '"', "”": '"', "’": "'",
}  # fmt: skip
UNKNOWN = "?"


def let_print_anything() -> None:
    """Keep standard output and error from failing at a letter, as with PYTHONIOENCODING=ascii or a Latin-1 locale."""
    codecs.register_error(ERRORS, _instead)
    for stream in (sys.stdout, sys.stderr):
        _take_handler(stream)


def has_all_letters() -> bool:
    """Whether standard output can print every letter."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf-")


def _take_handler(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and stream.errors in ("strict", "backslashreplace"):
        reconfigure(errors=ERRORS)


def _instead(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(INSTEAD.get(letter, UNKNOWN) for letter in lacking), problem.end


# The line of a file that an error names, with a caret below the word that is meant.

PLACE = re.compile(r"(?P<file>[^\n]+?), line (?P<line>\d+): (?P<rest>[^\n]*)")
QUOTED = re.compile(r"'([^']+)'")


def excerpt(message: str) -> str:
    """Two lines to print below an error; "" where it names no line, or the file cannot be read."""
    place = PLACE.match(message)
    if place is None:
        return ""
    number = int(place["line"])
    try:
        source = Path(place["file"]).read_text(encoding="utf-8").splitlines()[number - 1].expandtabs(1)
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
    begin, width = _where(source, place["rest"])
    gutter = f"{number:>6} | "
    return f"{gutter}{source}\n{'':>6} | {' ' * begin}{'^' * width}"


def _where(source: str, sentence: str) -> tuple[int, int]:
    """Where the first word in quotes stands, or the last part of a dotted key; else all that is written there."""
    for quoted in QUOTED.findall(sentence):
        for word in (quoted, quoted.rpartition(".")[2]):
            if not word.isdigit() and (begin := source.find(word)) >= 0:
                return begin, len(word)
    written = source.strip()
    return len(source) - len(source.lstrip()), max(1, len(written))
