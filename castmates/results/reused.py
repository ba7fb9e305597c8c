"""A launch that another study measured, copied into the results of a study for which it counts too."""

import os
import shutil
from pathlib import Path

from castmates.files import sha256_of
from castmates.results.columns.launch import LAUNCH_TABLES, RECORD, record_text, table_file
from castmates.results.records import REUSED, read_record


def copy_launch(source: Path, target: Path, study: str) -> None:
    """Copy a launch for a study of this name: all that was measured stays, and its record says where it comes from."""
    record = read_record(source / RECORD)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    tables = [table_file(name) for name in LAUNCH_TABLES if (source / table_file(name)).is_file()]
    for name in tables:
        _copy_table(source / name, draft / name, study)
    origin = {"study": record["spec"]["study"], "started": record["started"]}
    record |= {"spec": record["spec"] | {"study": study}, REUSED: origin}
    (draft / RECORD).write_text(record_text(record, {name: sha256_of(draft / name) for name in tables}), "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def _copy_table(source: Path, target: Path, study: str) -> None:
    """Copy a table, of which each row has the name of its study."""
    import pyarrow as pa
    from pyarrow.parquet import read_table, write_table

    table = read_table(source)
    names = pa.array([study] * len(table), table.schema.field("study").type)
    place = table.schema.get_field_index("study")
    write_table(table.set_column(place, table.schema.field("study"), names), target)
