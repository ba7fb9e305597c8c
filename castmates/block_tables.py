"""Reads the tables that blocks left, of thousands of blocks: whole, or in parts that fit into memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.tables import BLOCK_TABLES, frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

BLOCKS_AT_A_TIME = 500
NEEDED = "windows"  # every block has them; of the other tables, blocks from before they were written have none
GATHERED = ("counters", "topdown", "layers")  # whole in tables/NAME.parquet, where figures need them


def read(places: Sequence[Path], name: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """One table of the blocks in these folders, in their order; with these columns alone, where some are given.

    A table may have columns beyond the data contract (steps have their phases): they come last, unless not asked for.
    """
    return _frame(_read(_files(places, name), name, columns), name, columns)


def parts(
    places: Sequence[Path],
    name: str,
    columns: Sequence[str] | None = None,
    blocks: int = BLOCKS_AT_A_TIME,
    categories: Sequence[str] = (),
) -> Iterator["pd.DataFrame"]:
    """The same rows in the same order, so many blocks at a time; a part without rows is left out.

    The columns `categories` come as categories: names that stand in millions of rows are read several times as fast.
    """
    for begin in range(0, len(places), blocks):
        tables = _read(_files(places[begin : begin + blocks], name), name, columns, categories)
        part = _frame(tables, name, columns, categories)
        if len(part):
            yield part


def gather(places: Sequence[Path], name: str, file: Path, blocks: int = BLOCKS_AT_A_TIME) -> None:
    """Write a table of all blocks into one file, without ever holding all of its rows."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = BLOCK_TABLES[name]
    # As they are stored, a few names and their places: nothing is spelled out for each row, to be found again after.
    names = [column for column, kind in types.items() if kind == "str"]
    plain = pa.Schema.from_pandas(frame([], types), preserve_index=False)
    coded = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([(field.name, coded if field.name in names else field.type) for field in plain])
    with ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata(plain.metadata)  # what pandas wants to know of the types
        for begin in range(0, len(places), blocks):
            if tables := _read(_files(places[begin : begin + blocks], name), name, list(types), names):
                whole = _fitted(pa.concat_tables(tables, promote_options="permissive"), schema)
                writer.write_table(whole, row_group_size=whole.num_rows)  # a part for `gathered_parts`


def read_gathered(file: Path, name: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """A table of all blocks in one file, as the analysis leaves it."""
    return _frame(_read([file], name, columns), name, columns)


def gathered_parts(file: Path, name: str, columns: Sequence[str] | None = None) -> Iterator["pd.DataFrame"]:
    """The same, some whole blocks at a time."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        for number in range(opened.num_row_groups):
            yield _frame([opened.read_row_group(number, columns and list(columns))], name, columns)


def _files(places: Sequence[Path], name: str) -> list[Path]:
    return [place / f"{name}.parquet" for place in places]


def _fitted(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """The table with exactly the columns and types of the schema."""
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _read(
    files: Sequence[Path], name: str, columns: Sequence[str] | None, categories: Sequence[str] = ()
) -> "list[pa.Table]":
    """The tables that have rows, one file after the other: threads mostly wait for each other."""
    tables = (_table(file, name, columns, categories) for file in files)
    return [table for table in tables if table is not None]


def _table(file: Path, name: str, columns: Sequence[str] | None, categories: Sequence[str]) -> "pa.Table | None":
    import pyarrow as pa

    try:
        with _opened(file, categories) as opened:
            if name == NEEDED and (lacking := {*(columns or BLOCK_TABLES[name])} - {*opened.schema_arrow.names}):
                raise ValueError(f"it has no column '{min(lacking)}'")
            if not opened.metadata.num_rows:
                return None
            return opened.read(columns=None if columns is None else list(columns), use_threads=False)
    except FileNotFoundError as problem:
        if name != NEEDED:
            return None
        raise _unreadable(file, problem) from None
    except (OSError, ValueError, pa.ArrowException) as problem:
        raise _unreadable(file, problem) from None


def _opened(file: Path, categories: Sequence[str]) -> "ParquetFile":
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(file, pre_buffer=False, read_dictionary=list(categories))
    except KeyError:  # a block from before one of these columns was written
        with ParquetFile(file, pre_buffer=False) as plain:
            there = [name for name in categories if name in plain.schema_arrow.names]
        return ParquetFile(file, pre_buffer=False, read_dictionary=there)


def _unreadable(file: Path, problem: Exception) -> CastmatesError:
    why = str(problem).splitlines()[0].rstrip(".:")
    return CastmatesError(f"{file} cannot be read ({why}); remove {file.parent} to have the block measured again.")


def _frame(
    tables: "Sequence[pa.Table]", name: str, columns: Sequence[str] | None, categories: Sequence[str] = ()
) -> "pd.DataFrame":
    """The rows of all, with the types of the data contract; `categories` as they were read."""
    import pandas as pd
    import pyarrow as pa

    types = {column: BLOCK_TABLES[name].get(column, "float64") for column in columns or BLOCK_TABLES[name]}
    types |= dict.fromkeys(categories, "category")
    if not tables:
        return frame([], types)
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    own = [column for column in whole.column_names if column not in types] if columns is None else []
    found = {}
    for column in (*types, *own):
        values = whole[column] if column in whole.column_names else pa.nulls(whole.num_rows)
        # By way of floats, nanoseconds would lose their last digits.
        series = values.to_pandas(
            types_mapper={pa.int64(): pd.Int64Dtype()}.get if types.get(column) == "Int64" else None
        )
        found[column] = series.astype(types[column]) if column in types else series
    return pd.DataFrame(found)
