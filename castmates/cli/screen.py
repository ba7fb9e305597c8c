"""Where commands print: a terminal with its width and colours, or a pipe, in which nothing is coloured or cut off."""

import codecs
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from rich.console import Console

    from castmates.pipeline.replay import Replay
    from castmates.report.comparison.replay import Replayed
    from castmates.results.published import Published


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
    escaped = not has_all_letters()
    typer.echo(json.dumps(_plain(content), indent=2, ensure_ascii=escaped, allow_nan=False))


def rows_of(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a table as JSON has them."""
    return list(json.loads(table.to_json(orient="records", double_precision=15)))


def _plain(value: Any) -> object:  # noqa: ANN401 (whatever a command has found)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


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


# `castmates sweep --replay`: a published study is measured again here, and compared with what was published.

SHOWN = 40  # rows in a terminal
DIFFERENCES = 16


@dataclass(frozen=True)
class Replaying:
    """How a published study is measured again, and how that is shown."""

    lead: str = ""
    launches: int | None = None
    name: str = ""
    margin: float | None = None
    only_write: bool = False
    as_json: bool = False


def replay_published(published: Path, wish: Replaying, cores: str, options: Sequence[str]) -> None:
    """Measure a published study, or one launch of it, again on this machine; show which effects agree.

    The same command goes on after an interruption. It ends with 0 if every effect agrees, 3 if one differs, and 4 if
    none differs and some are undecided.
    """
    from castmates.english import printable
    from castmates.pipeline import snakemake
    from castmates.pipeline.replay import Asked, prepare
    from castmates.rdt.captured import facts_here
    from castmates.results.published import find_published

    source = find_published(published)
    prepared = prepare(source, Asked(wish.lead, wish.launches, wish.name), facts_here)
    typer.echo(f"study: {prepared.file}", err=True)
    for line in _beforehand(prepared):
        typer.echo(printable(line), err=True)  # a stranger wrote the commands in it
    if wish.only_write:
        return
    say = partial(typer.echo, err=True)
    snakemake.sweep(prepared.file, cores, say, options=options, shows_result=False)
    found = _compared(source, prepared, wish.margin)
    files = _write(found, prepared)
    if wish.as_json:
        show_json(_data(found))
    else:
        _print(found)
    for file in files:
        typer.echo(file, err=wish.as_json)
    raise typer.Exit(found.status)


def _beforehand(prepared: "Replay") -> "Iterator[str]":
    """What is known to differ before hours are spent on it."""
    from castmates.report.comparison.details import other_work

    yield from prepared.notes
    for what, there, here in other_work([prepared.published.plan, prepared.plan]):
        yield f"{what}: {here} here, {there} in the published study."


def _compared(source: "Published", prepared: "Replay", margin: float | None) -> "Replayed":
    from castmates.pipeline.replay import without_controls
    from castmates.report.comparison.replay import control_notes, replay_of
    from castmates.results.columns.study import STAMPS
    from castmates.results.find import read_measured
    from castmates.results.folder import StudyFolder
    from castmates.results.published import published_effects
    from castmates.results.tables import Tables

    folder = StudyFolder.of(prepared.plan.study)
    stamps = Tables(folder, prepared.file).read(STAMPS)
    notes = [*prepared.notes, *control_notes(stamps)]
    here = without_controls(read_measured(folder.path))
    return replay_of(prepared.published, here, margin, source.named, notes, published_effects(source))


def _write(found: "Replayed", prepared: "Replay") -> list[Path]:
    from castmates.report.comparison.replay_page import write

    return write(found, prepared.file.parent)


def _print(found: "Replayed") -> None:
    from rich.table import Table

    from castmates.report.comparison.replay import headline, rows, sentences, stamp

    where = console()
    for words in filter(None, (found.pair.origin, stamp(found))):
        where.print(words.upper(), style="bold red", markup=False)
    first = headline(found)
    for sentence in sentences(found):
        where.print(f"• {sentence}", style="bold" if sentence == first else None, markup=False)
    every = rows(found)
    partitioned = any(row["partition"] != "unmanaged" for row in every)
    table = Table(box=None)
    for head in ("mix", "member", *(["partition"] * partitioned), "against", "published (%)", "here (%)",
                 "here/published", "together (%)", "verdict", "launches"):  # fmt: skip
        table.add_column(head, overflow="fold")
    for row in every[:SHOWN]:
        place = [row["mix"], row["member"], *([row["where"]] if partitioned else []), row["baseline"]]
        numbers = [row["said_published"], row["said_here"], row["said_ratio"], row["said_joint"], row["verdict"]]
        table.add_row(*place, *numbers, f"{row['published_launches']}, {row['here_launches']}")
    if len(every) > SHOWN:
        table.caption = f"{len(every) - SHOWN} more rows are in replay.csv."
    where.print()
    where.print(table)
    where.print()
    if not found.differences:
        where.print("Nothing that was recorded of machines, versions, designs and programs differs.")
    for sentence in found.differences[:DIFFERENCES]:
        where.print(f"• {sentence}", markup=False)
    if len(found.differences) > DIFFERENCES:
        where.print(f"{len(found.differences) - DIFFERENCES} more differences are on the page.")
    where.print()


def _data(found: "Replayed") -> dict[str, object]:
    from castmates.report.comparison.replay import sentences, stamp

    return {
        "origin": found.pair.origin,
        "stamp": stamp(found),
        "status": found.status,
        "margin": found.pair.margin,
        "sentences": sentences(found),
        "rows": rows_of(found.table),
        "differences": list(found.differences),
        "contradictions": list(found.contradictions),
    }
