"""Writes rows as a Parquet file with exactly these columns and types, as pandas would write them.

Every launch writes six of these files, and importing pandas takes longer than writing them. Columns are therefore laid
out here as Arrow has them in memory: even `pyarrow.array` of a list imports pandas. What pandas reads of the types it
finds in the schema, as if it had written it itself.
"""

import json
from array import array
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from castmates.results.columns.contract import Columns

if TYPE_CHECKING:
    import pyarrow as pa


def load_ahead() -> None:
    """Import what writing needs in a thread, so that it is there, or on its way, when rows are to be written."""
    Thread(target=import_module, args=("pyarrow.parquet",), name="loads pyarrow").start()


def write_rows(rows: Sequence[Mapping[str, Any]], columns: Columns, path: Path) -> None:
    """Write these rows, each of which may have further keys; a missing value is None, or NaN."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    arrays = [_array([row.get(name) for row in rows], kind) for name, kind in columns.items()]
    fields = [pa.field(name, each.type) for name, each in zip(columns, arrays, strict=True)]
    schema = pa.schema(fields, metadata={"pandas": json.dumps(_for_pandas(columns))})
    write_table(pa.Table.from_arrays(arrays, schema=schema), path)


def _array(values: Sequence[Any], kind: str) -> "pa.Array[Any]":
    """The values as Arrow lays them out: which are there, and the values themselves."""
    import pyarrow as pa

    there = [value is not None and value == value for value in values]  # NaN differs from itself
    if kind in ("int64", "bool") and not all(there):
        raise ValueError(f"a column of {kind} lacks a value")
    mask = None if all(there) else _bits(there)
    if kind == "str":
        texts = [value.encode() if known else b"" for value, known in zip(values, there, strict=True)]
        ends = array("q", accumulate(map(len, texts), initial=0))
        type_, parts = pa.large_string(), [pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    elif kind == "bool":
        type_, parts = pa.bool_(), [_bits(values)]
    else:
        type_, code = (pa.float64(), "d") if kind == "float64" else (pa.int64(), "q")
        numbers = array(code, (value if known else 0 for value, known in zip(values, there, strict=True)))
        parts = [pa.py_buffer(numbers)]
    return pa.Array.from_buffers(type_, len(values), [mask, *parts])


def _bits(flags: Sequence[object]) -> "pa.Buffer":
    """Flags as bits, the first one lowest."""
    import pyarrow as pa

    eights = (flags[first : first + 8] for first in range(0, len(flags), 8))
    return pa.py_buffer(bytes(sum(bool(flag) << bit for bit, flag in enumerate(eight)) for eight in eights))


def _for_pandas(columns: Columns) -> dict[str, Any]:
    """What pandas keeps in a schema: it alone distinguishes whole numbers with gaps (Int64) from others."""
    stored = {"str": "object", "Int64": "int64"}
    return {
        "index_columns": [],
        "column_indexes": [],
        "columns": [
            {
                "name": name,
                "field_name": name,
                "pandas_type": stored.get(kind, kind),
                "numpy_type": kind,
                "metadata": None,
            }
            for name, kind in columns.items()
        ],
        "attributes": {},
        "creator": {"library": "pyarrow", "version": version("pyarrow")},
        "pandas_version": version("pandas"),
    }
