"""Writes the answer of a query: a table for the terminal, CSV, JSON or Parquet, part by part."""

import json
import math
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from castmates.english import counted
from castmates.files import replace, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    Parts = Iterator[pa.RecordBatch]


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
