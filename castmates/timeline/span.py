"""When a timeline begins and ends, on which clock, and a part of it between two moments."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.trace import TRACE_RECORD, TRACE_TABLES
from castmates.timeline.model import Timeline

TIMES = {
    "intervals": ("t0_ns", "t1_ns"),
    "instants": ("t_ns", "t_ns"),
    "samples": ("t_ns", "t_ns"),
    "stacks": ("t_ns", "t_ns"),
}


def start(timeline: Timeline) -> int:
    """The first moment of a timeline, in nanoseconds of its clock."""
    tables = {name: timeline.table(name) for name in TIMES}
    return min((int(table[TIMES[name][0]].iloc[0]) for name, table in tables.items() if len(table)), default=0)


def extent(folder: Path) -> tuple[int, int]:
    """The first and the last moment of a trace, as the heads of its files have them; a damaged file is a sentence."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    ends: list[int] = []
    for name, columns in TRACE_TABLES.items():
        file = folder / f"{name}.parquet"
        try:
            with ParquetFile(file) as table:
                if lacking := [each for each in columns if each not in table.schema_arrow.names]:
                    raise ValueError(f"it has no column {lacking[0]}")
                about, places = table.metadata, {each: place for place, each in enumerate(table.schema_arrow.names)}
        except (OSError, ValueError, ArrowException) as problem:
            why = (
                reason(problem) if isinstance(problem, FileNotFoundError) else str(problem).splitlines()[0].rstrip(".")
            )
            raise CastmatesError(
                f"{file}: this is no table of a trace ({why}); remove {folder / TRACE_RECORD}, and trace again."
            ) from None
        for group in range(about.num_row_groups):
            for column in TIMES.get(name, ()):
                seen = about.row_group(group).column(places[column]).statistics
                ends += [seen.min, seen.max] if seen is not None and seen.has_min_max else []
    return min(ends, default=0), max(ends, default=0)


MONOTONIC, REALTIME, UNKNOWN = "CLOCK_MONOTONIC", "CLOCK_REALTIME", "unknown"


def clock_of(about: Mapping[str, Any]) -> str:
    """MONOTONIC for traces of our own; of imported ones what their record names, or UNKNOWN where that is neither."""
    imported = about.get("imported")
    if imported is None:
        return MONOTONIC
    named = imported.get("clock", "")
    return named if named in (MONOTONIC, REALTIME) else UNKNOWN


def pairs_of(about: Mapping[str, Any], begin: int) -> list[tuple[int, int | None]]:
    """Moments on the timeline's clock, and the same on the real-time clock where that is known."""
    if clock_of(about) == REALTIME:
        return [(begin, begin)]
    pairs = about.get("clocks") or [{"steady_ns": begin}]
    return [(int(pair["steady_ns"]), None if pair.get("real_ns") is None else int(pair["real_ns"])) for pair in pairs]


SECOND = 10**9


def span_of(text: str) -> tuple[float, float | None]:
    """FROM:TO in seconds from the beginning of a trace; either side may be left out."""
    before, colon, after = text.partition(":")
    try:
        first, last = float(before or 0), float(after) if after else None
    except ValueError:
        first, last = -1.0, None
    if not colon or not 0 <= first < (last if last is not None else np.inf):
        raise CastmatesError(f"--span is '{text}', expected two times in seconds from the beginning, such as 1.5:3.")
    return first, last


def cut(timeline: Timeline, first: float, last: float | None) -> Timeline:
    """What happens in a span; intervals that reach beyond it end there."""
    origin = start(timeline)
    begin = origin + round(first * SECOND)
    end = np.iinfo(np.int64).max if last is None else origin + round(last * SECOND)
    rows = timeline.intervals
    empty = (rows["t0_ns"] == rows["t1_ns"]) & (rows["t1_ns"] == begin)
    inside = rows[((rows["t1_ns"] > begin) | empty) & (rows["t0_ns"] < end)]
    inside = inside.assign(t0_ns=inside["t0_ns"].clip(lower=begin), t1_ns=inside["t1_ns"].clip(upper=end))
    order = np.lexsort((inside["depth"], -inside["t1_ns"], inside["t0_ns"]))
    found = {name: _between(timeline.table(name), begin, end) for name in ("instants", "samples", "stacks")}
    filters = {**timeline.about.get("filters", {}), "span": [first, last]}
    until = "its end" if last is None else f"{last:g} s"
    part = f"this is a part of the trace, from {first:g} s to {until}: the counts of its sources are those of all of it"
    return replace(
        timeline,
        intervals=inside.iloc[order].reset_index(drop=True),
        **found,
        about=timeline.about | {"filters": filters, "missing": {**timeline.about.get("missing", {}), part: []}},
    )


def _between(table: pd.DataFrame, begin: int, end: int) -> pd.DataFrame:
    return table[(table["t_ns"] >= begin) & (table["t_ns"] < end)].reset_index(drop=True)
