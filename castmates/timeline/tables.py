"""Writes and reads the tables of a timeline: a Parquet file each, and the record last."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import write_table

from castmates.errors import CastmatesError
from castmates.files import mapping_of, reason, replace, replace_text, understanding
from castmates.results.columns.contract import Columns
from castmates.results.columns.trace import TRACE_RECORD, TRACE_TABLES
from castmates.timeline.model import Timeline

TYPES = {
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "str": pa.dictionary(pa.int32(), pa.string()),
}


def write(timeline: Timeline, folder: Path) -> None:
    """Write a timeline into a folder, its record last."""
    write_tables(timeline, folder)
    write_record(timeline, folder)


def write_tables(timeline: Timeline, folder: Path) -> None:
    """Write all but the record, without which they are no trace."""
    with _refused(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TRACE_RECORD).unlink(missing_ok=True)  # a record never stands beside another trace's tables
        for name, contract in TRACE_TABLES.items():
            table = _arrow(timeline.table(name), contract)
            replace(folder / f"{name}.parquet", partial(write_table, table, compression="zstd"))


def write_record(timeline: Timeline, folder: Path) -> None:
    """Write the record, which makes the folder a trace."""
    with _refused(folder):
        replace_text(folder / TRACE_RECORD, json.dumps(timeline.about, indent=1, sort_keys=True) + "\n")


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise CastmatesError(
            f"the trace cannot be written into {folder} ({reason(problem)}): make room or give write access there, "
            "and run the same command again."
        ) from None


def read(folder: Path, *tables: str) -> Timeline:
    """Read a timeline; with `tables` only these, and the others are empty."""
    about = read_about(folder)
    wanted = tables or tuple(TRACE_TABLES)
    return Timeline(
        **{name: _read(folder / f"{name}.parquet", each, name in wanted) for name, each in TRACE_TABLES.items()},
        about=about,
    )


def read_about(folder: Path) -> dict[str, Any]:
    """The record of a trace, which must be there; where it may be missing: `castmates.results.traces.read_record`."""
    file = folder / TRACE_RECORD
    with understanding(file, "a record of a trace", "make one with `castmates trace record STUDY MIX`"):
        return mapping_of(file)


def _arrow(table: pd.DataFrame, contract: Columns) -> pa.Table:
    schema = pa.schema([pa.field(name, TYPES[kind]) for name, kind in contract.items()])
    return pa.Table.from_pandas(table, schema=schema, preserve_index=False)


def _read(file: Path, contract: Columns, wanted: bool) -> pd.DataFrame:
    try:
        table = pd.read_parquet(file, columns=list(contract)) if wanted else _arrow_empty(contract)
    except (OSError, ValueError, KeyError) as problem:
        why = str(problem).splitlines()[0].rstrip(".")
        raise CastmatesError(
            f"{file}: this is no table of a trace ({why}); remove {file.parent / TRACE_RECORD}, and trace again."
        ) from None
    whole = {name: "Int64" for name, kind in contract.items() if kind == "Int64"}
    words = {name: "category" for name, kind in contract.items() if kind == "str"}
    return table.astype(whole | words)


def _arrow_empty(contract: Columns) -> pd.DataFrame:
    schema = pa.schema([pa.field(name, TYPES[kind]) for name, kind in contract.items()])
    empty: pd.DataFrame = schema.empty_table().to_pandas()
    return empty
