"""When a timeline begins, and when it ends: one first moment for all that counts from it."""

from pathlib import Path

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
