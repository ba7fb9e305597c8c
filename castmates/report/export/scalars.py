"""A study's launches as scalars, by scene: how fast each member was, what was counted, and what leads lost."""

import json
import math
import shutil
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.analysis.design.pilot import against_alone
from castmates.analysis.explanations.counted_metrics import usable
from castmates.analysis.keys import ROW, WINDOW
from castmates.analysis.statistics.intervals import per_launch
from castmates.analysis.statistics.pairs import log_rates, pair
from castmates.errors import CastmatesError
from castmates.files import make_folder, replace, writing
from castmates.report.results import Results, records
from castmates.report.text.words import between
from castmates.results.folder import StudyFolder

# Scalars as TensorBoard reads them: an event file, which is TFRecords of Event messages (event.proto); pure.
#
# A record is its length, the length's checksum, the message and its checksum. A message has a time, a step and a
# summary; the field simple_value of a summary is a scalar. TensorBoard keeps a description where the metadata beside it
# call it a scalar too.

MASK = 0xA282EAD8  # added to a checksum, so that checksums of checksums are none that occur
POLYNOMIAL = 0x82F63B78  # of CRC-32C, its bits reversed
VARINT, FIXED64, TEXT, FIXED32 = 0, 1, 2, 5  # kinds of fields
WALL_TIME, STEP, VERSION, SUMMARY = 1, 2, 3, 5  # of an Event
VALUE = 1  # of a Summary
TAG, SIMPLE_VALUE, METADATA = 1, 2, 9  # of its Value
PLUGIN, DESCRIPTION, DATA_CLASS = 1, 3, 4  # of a SummaryMetadata
NAME, SCALARS, SCALAR = 1, b"scalars", 1  # of the plug-in, in PluginData; and the data class


@dataclass(frozen=True)
class Scalar:
    """One value of a run."""

    tag: str
    step: int
    wall_time: float  # seconds since 1970
    value: float
    about: str = ""  # what it is, where TensorBoard explains it


def event_file(scalars: Iterable[Scalar], begun: float) -> Iterator[bytes]:
    """The records of an event file; each tag is explained once."""
    yield _record(_fixed64(WALL_TIME, begun) + _text(VERSION, b"brain.Event:2"))
    explained: set[str] = set()
    for one in scalars:
        about = b"" if one.tag in explained else _metadata(one.about)
        explained.add(one.tag)
        value = _text(TAG, one.tag.encode()) + _key(SIMPLE_VALUE, FIXED32) + struct.pack("<f", one.value) + about
        step = _key(STEP, VARINT) + _varint(one.step)
        yield _record(_fixed64(WALL_TIME, one.wall_time) + step + _text(SUMMARY, _text(VALUE, value)))


def _metadata(about: str) -> bytes:
    plugin = _text(PLUGIN, _text(NAME, SCALARS))
    return _text(METADATA, plugin + _text(DESCRIPTION, about.encode()) + _key(DATA_CLASS, VARINT) + _varint(SCALAR))


def checksum(data: bytes) -> int:
    """CRC-32C, as records store it: turned, and with a constant added."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + MASK) & 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", checksum(length)) + message + struct.pack("<I", checksum(message))


def _fixed64(number: int, value: float) -> bytes:
    return _key(number, FIXED64) + struct.pack("<d", value)


def _text(number: int, content: bytes) -> bytes:
    return _key(number, TEXT) + _varint(len(content)) + content


def _key(number: int, kind: int) -> bytes:
    return bytes([number << 3 | kind])


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


MEASURED = "measured"
PLACE = ["platform", "cohort", "scene", "launch"]
COUNTED = [*WINDOW, "event", "value", "status", "running", "phase", "source"]
ENDS = {"estimate": "loss_pct", "low": "loss_low", "high": "loss_high"}
Runs = Mapping[tuple[str, ...], list[Scalar]]  # by the folders of the run


def scalars(results: Results) -> Runs:
    """The scalars of each run, which is a scene of a cohort; those that were not measured name their platform."""
    starts = _starts(results)
    found: dict[tuple[str, ...], list[Scalar]] = defaultdict(list)
    for part in (_rates(results), _counters(results), _losses(results)):
        for platform, cohort, scene, launch, tag, value, about in part:
            if math.isfinite(value):
                run = (cohort, scene) if platform == MEASURED else (platform, cohort, scene)
                found[run].append(Scalar(tag, launch, starts.get((cohort, launch), 0.0), value, about))
    return found


Row = tuple[str, str, str, int, str, float, str]  # platform, cohort, scene, launch, tag, value, what it is


def _rates(results: Results) -> Iterator[Row]:
    """The geometric mean of each member's windows that count."""
    units = results.windows.groupby("member", observed=True)["unit"].first()
    means = log_rates(results.windows).groupby([*PLACE, "member"], observed=True)["log_rate"].mean().reset_index()
    for row in records(means):
        about = f"rate ({units[row['member']]} per second) in a launch: geometric mean of its windows that count"
        yield *(row[name] for name in PLACE), f"rate/{row['member']}", math.exp(row["log_rate"]), about


def _counters(results: Results) -> Iterator[Row]:
    """The mean of each event in the windows that count; what was counted for part of the time is left out."""
    windows = results.windows[results.windows["valid"]][[*WINDOW, "platform", "scene", "open_s"]]
    sums: list[pd.DataFrame] = []
    for part in results.launch_parts("counters", COUNTED):
        counts = part[usable(part)].merge(windows, on=WINDOW)
        counts = counts.assign(value=counts["value"].to_numpy(dtype=float) / counts["open_s"].to_numpy(dtype=float))
        sums.append(counts.groupby([*PLACE, "member", "event"], observed=True)["value"].mean().reset_index())
    for row in records(pd.concat(sums, ignore_index=True)) if sums else []:
        about = f"{row['event']} per second in a launch: mean of its windows that count"
        yield *(row[name] for name in PLACE), f"counters/{row['member']}/{row['event']}", row["value"], about


def _losses(results: Results) -> Iterator[Row]:
    """What a lead lost in each launch, and beside it the estimate of all launches with the ends of its interval."""
    contrasts = against_alone(results.plan)
    if contrasts.empty:
        return
    effects = results.lead_effects("alone", under_partitions=True)
    level = between(effects)
    estimates = {(row["platform"], row["mix"], row["partition"]): row for row in records(effects)}
    launches = per_launch(pair(results.windows, contrasts), ROW).reset_index()
    named = contrasts[["row", "scene", "mix", "partition", "member"]].drop_duplicates("row")
    for row in records(launches.merge(named, on="row")):
        place = (row["platform"], row["cohort"], row["scene"], row["launch"])
        lost = 100 * (1 - float(np.exp(-row["value"])))
        yield *place, "loss/launch", lost, f"per cent that {row['member']} lost in a launch against itself alone"
        known = estimates.get((row["platform"], row["mix"], row["partition"]), {})
        for end, column in ENDS.items():
            value = float(known.get(column, math.nan))
            yield *place, f"loss/{end}", value, f"per cent, of all launches together; 95 % {level}"


def _starts(results: Results) -> dict[tuple[str, int], float]:
    """When each launch began, in seconds since 1970."""
    found = {}
    for row in records(results.launches[["cohort", "launch", "started"]]):
        try:
            found[row["cohort"], row["launch"]] = datetime.fromisoformat(row["started"]).timestamp()
        except (TypeError, ValueError):  # modelled launches begin at no time
            continue
    return found


# The scalars of a study for TensorBoard, and its tables as JSON.

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
