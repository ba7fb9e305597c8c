"""Writes the scalars of a study for TensorBoard, and its tables as JSON."""

import json
import math
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import make_folder, replace, writing
from castmates.report.export.event_files import event_file
from castmates.report.export.scalars import scalars
from castmates.report.results import Results
from castmates.results.folder import StudyFolder

EVENTS = "events.out.tfevents.0000000000.castmates"  # TensorBoard knows its files by the beginning of their names
ROWS = 10_000  # of a table, at a time


def write_scalars(results: Results) -> tuple[Path, int]:
    """Write results/<study>/tensorboard again; the folder, and how many runs it has."""
    place = results.folder.tensorboard
    runs = scalars(results)
    if not runs:
        raise CastmatesError(f"{results.folder}: no launch has a rate, so there is nothing for TensorBoard.")
    begun = min(one.wall_time for own in runs.values() for one in own)
    with writing(place):
        _clear(place)
        for run, own in runs.items():
            ordered = sorted(own, key=lambda one: one.step)
            replace(results.folder.tensorboard_run(run) / EVENTS, partial(_pour, event_file(ordered, begun)))
    return place, len(runs)


def _pour(parts: Iterator[bytes], file: Path) -> None:
    with file.open("wb") as out:
        out.writelines(parts)


def _clear(place: Path) -> None:
    """Remove what an earlier call left: nothing but its own event files and the folders that are then empty."""
    for file in sorted(place.rglob(EVENTS)):
        file.unlink()
    for folder in sorted((each for each in place.rglob("*") if each.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            shutil.rmtree(folder)


def write_tables(folder: StudyFolder) -> tuple[Path, int]:
    """Write each table of the study as TABLE.json beside its CSV: a list with an object for each row."""
    files = sorted(folder.tables.glob("*.parquet"))
    if not files:
        raise CastmatesError(f"{folder}: there are no tables; give the results folder of an analysed study.")
    make_folder(folder.tables)
    for file in files:
        target = file.with_suffix(".json")
        with writing(target):
            replace(target, partial(_write_json, file))
    return folder.tables, len(files)


def _write_json(table: Path, file: Path) -> None:
    """One row a line; a value that is missing, or infinite, is null."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(table) as opened, file.open("w", encoding="utf-8") as out:
            between = "[\n"
            for batch in opened.iter_batches(ROWS):
                for row in batch.to_pylist():
                    known = {name: _plain(value) for name, value in row.items()}
                    out.write(between + json.dumps(known, ensure_ascii=False, allow_nan=False))
                    between = ",\n"
            out.write("[]\n" if between == "[\n" else "\n]\n")
    except (pa.ArrowException, ValueError) as problem:
        why = str(problem).splitlines()[0].rstrip(".")
        raise CastmatesError(f"{table}: this table cannot be written as JSON ({why}).") from None


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
