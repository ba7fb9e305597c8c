"""Reads the tables that launches left, of thousands of launches: whole, or in parts that fit into memory."""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from castmates.errors import CastmatesError
from castmates.files import ODD, Unreadable, regular, sha256_of, why
from castmates.results.bundle_names import bundle_list
from castmates.results.columns.launch import DIGESTS, LAUNCH_TABLES, OF_CPUS, WINDOWS, table_file
from castmates.results.columns.study import frame
from castmates.results.folder import BUNDLES
from castmates.results.records import table_digests

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LAUNCHES_AT_A_TIME = 500
NEEDED = "windows"  # every launch has them


def read(
    places: Sequence[Path], name: str, columns: Sequence[str] | None = None, categories: Sequence[str] = ()
) -> "pd.DataFrame":
    """One table of the launches in these folders, in their order; with these columns alone, if any.

    A table may have columns beyond the data contract (steps have their phases): they come last, unless not asked for.
    The columns `categories` come as categories: names that stand in millions of rows are read several times as fast.
    """
    return _frame(_read(_files(places, name), name, columns), name, columns, categories)


def read_windows(places: Sequence[Path]) -> "pd.DataFrame":
    """All windows of the launches in these folders, with the columns of the data contract."""
    return read(places, "windows", list(WINDOWS))


def parts(
    places: Sequence[Path],
    name: str,
    columns: Sequence[str] | None = None,
    launches: int = LAUNCHES_AT_A_TIME,
    categories: Sequence[str] = (),
) -> Iterator["pd.DataFrame"]:
    """The same rows in the same order, so many launches at a time; a part without rows is left out."""
    for begin in range(0, len(places), launches):
        part = read(places[begin : begin + launches], name, columns, categories)
        if len(part):
            yield part


def gather(places: Sequence[Path], name: str, file: Path) -> None:
    """Write one table of all these launches into one file, which is read like that of one launch."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = LAUNCH_TABLES[name]
    # As they are stored, a few names and their places: no row spells them out.
    names = [column for column, kind in types.items() if kind == "str"]
    plain = pa.Schema.from_pandas(frame([], types), preserve_index=False)
    tables = _read(_files(places, name), name, None) or [plain.empty_table()]
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().combine_chunks()
    coded = pa.dictionary(pa.int32(), pa.string())
    contract = [field.with_type(coded) if field.name in names else field for field in plain]
    schema = pa.schema([*contract, *(field for field in whole.schema if field.name not in types)])
    times = [field.name for field in schema if field.name.endswith("_ns")]
    few = [field.name for field in schema if field.name not in times and not pa.types.is_floating(field.type)]
    with ParquetWriter(
        file, schema, compression="lz4", store_schema=False, write_statistics=False,
        use_dictionary=few, column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
    ) as writer:  # fmt: skip
        writer.add_key_value_metadata(plain.metadata)  # what pandas wants to know of the types
        writer.write_table(_fitted(whole, schema), row_group_size=max(1, whole.num_rows))


def in_order_of(places: Sequence[Path], table: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of the table by their launches, which lie in these folders, in this order."""
    import numpy as np
    import pandas as pd

    ranks = {(place.parts[-2], place.parts[-1]): rank for rank, place in enumerate(places)}
    launch = table.groupby(["cohort", "launch"], sort=False, observed=True).ngroup().to_numpy()
    first = table[["cohort", "launch"]].drop_duplicates()
    first_ranks = np.array(
        [ranks[cohort, str(number)] for cohort, number in first.itertuples(index=False)], dtype=np.int64
    )
    return pd.DataFrame(table.iloc[np.argsort(first_ranks[launch], kind="stable")]).reset_index(drop=True)


def _files(places: Sequence[Path], name: str) -> list[Path]:
    return [place / table_file(name) for place in places]


def _fitted(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """The table with exactly the columns and types of the schema."""
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _read(files: Sequence[Path], name: str, columns: Sequence[str] | None) -> "list[pa.Table]":
    """The tables that have rows, one file after the other: threads mostly wait for each other."""
    tables = (_table(file, name, columns) for file in files)
    return [table for table in tables if table is not None]


def _table(file: Path, name: str, columns: Sequence[str] | None) -> "pa.Table | None":
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    # Names are read as a few and their places, also where they are wanted in every row: none is made twice.
    names = [column for column, kind in LAUNCH_TABLES[name].items() if kind == "str"]
    try:
        # Refuse a table whose bytes are not those that were written.
        about, folder = os.stat(file), file.parent  # noqa: PTH116 (thousands of them)
        is_bundle = folder.parent.name == BUNDLES
        digests = bundle_list(folder).get(DIGESTS) if is_bundle else table_digests(folder)
        if digests is None:
            regular(file).close()
        elif _digest(str(file), about.st_mtime_ns, about.st_size) != digests.get(file.name):
            raise Unreadable("its bytes are not those that were written")
        with ParquetFile(file, pre_buffer=False, read_dictionary=names) as opened:
            if name == NEEDED and (
                lacking := {*(columns or LAUNCH_TABLES[name])}.difference(opened.schema_arrow.names, OF_CPUS)
            ):
                raise ValueError(f"it has no column '{min(lacking)}'")
            if not opened.metadata.num_rows:
                return None
            there = None if columns is None else [column for column in columns if column in opened.schema_arrow.names]
            return opened.read(columns=there, use_threads=False)
    except FileNotFoundError as problem:
        if name != NEEDED:
            return None
        raise _unreadable(file, problem) from None
    except (*ODD, pa.ArrowException) as problem:
        raise _unreadable(file, problem) from None


@lru_cache(maxsize=1 << 16)
def _digest(file: str, _changed: int, _size: int) -> str:
    """The digest of a table: several readers ask for columns of it, one after the other."""
    return sha256_of(Path(file))


def _unreadable(file: Path, problem: Exception) -> CastmatesError:
    words = why(problem).rstrip(".:")
    again = "its tables gathered" if file.parent.parent.name == BUNDLES else "the launch measured"
    return CastmatesError(f"{file} cannot be read ({words}); remove {file.parent} to have {again} again.")


def _frame(
    tables: "Sequence[pa.Table]", name: str, columns: Sequence[str] | None, categories: Sequence[str] = ()
) -> "pd.DataFrame":
    """The rows of all, with the types of the data contract; `categories` as they were read."""
    import pandas as pd
    import pyarrow as pa

    types = {column: LAUNCH_TABLES[name].get(column, "float64") for column in columns or LAUNCH_TABLES[name]}
    types |= dict.fromkeys(categories, "category")
    if not tables:
        return frame([], types)
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    own = [column for column in whole.column_names if column not in types] if columns is None else []
    read = {}
    for column in (*types, *own):
        values = whole[column] if column in whole.column_names else pa.nulls(whole.num_rows)
        # By way of floats, nanoseconds would lose their last digits.
        series = values.to_pandas(
            types_mapper={pa.int64(): pd.Int64Dtype()}.get if types.get(column) == "Int64" else None
        )
        read[column] = series.astype(types[column]) if column in types else series
    table = pd.DataFrame(read)
    del tables, whole, values, series, read
    pa.default_memory_pool().release_unused()  # more than the table itself takes
    return table
