"""The tables of a timeline in memory, and what puts them together from many sources.

Words are categories and times are whole nanoseconds, so that ten million rows fit into a gigabyte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.contract import Columns
from castmates.results.columns.trace import INSTANTS, INTERVALS, SAMPLES, STACKS, TRACE_RECORD, TRACE_TABLES, TRACKS

Cells = Any  # a whole column: an array, a list, categories; or the one value that all rows have
ORDER: Mapping[str, Mapping[str, bool]] = {  # columns -> whether ascending
    "tracks": {"track": True},
    "intervals": {"t0_ns": True, "t1_ns": False, "depth": True},
    "instants": {"t_ns": True},
    "samples": {"t_ns": True},
    "stacks": {"t_ns": True},
}


@dataclass(frozen=True)
class Timeline:
    """What happened, on one clock: tables of `results.columns.trace`, and what is known of them."""

    tracks: pd.DataFrame
    intervals: pd.DataFrame
    instants: pd.DataFrame
    samples: pd.DataFrame
    stacks: pd.DataFrame
    about: dict[str, Any] = field(default_factory=dict)  # the record of the trace (docs/tracing.md)

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name."""
        table: pd.DataFrame = getattr(self, name)
        return table


class Making:
    """A timeline that is being put together; parts come in any order."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self._tracks: list[dict[str, Any]] = []
        self._parts: dict[str, list[dict[str, Any]]] = {name: [] for name in TRACE_TABLES if name != "tracks"}

    def track(self, kind: str, name: str, parent: int | None = None, **about: Cells) -> int:
        """Add a track with its `member`, `pid`, `tid` or `cpu`, and return its number."""
        number = len(self._tracks)
        self._tracks.append({"track": number, "kind": kind, "name": name, "parent": parent, "member": ""} | about)
        return number

    def tracks(self) -> list[dict[str, Any]]:
        """The tracks so far, in the order of their numbers; what is known of one may be filled in."""
        return self._tracks

    def intervals(self, **columns: Cells) -> None:
        """Add intervals, column by column: an array, or one value that all have. Times and tracks must be given."""
        self._parts["intervals"].append(_part(columns, INTERVALS, {"t0_ns", "t1_ns", "track", "kind", "name"}))

    def instants(self, **columns: Cells) -> None:
        """Add instants likewise."""
        self._parts["instants"].append(_part(columns, INSTANTS, {"t_ns", "track", "kind", "name"}))

    def samples(self, **columns: Cells) -> None:
        """Add readings of numbers likewise."""
        self._parts["samples"].append(_part(columns, SAMPLES, {"t_ns", "track", "name", "value"}))

    def stacks(self, **columns: Cells) -> None:
        """Add sampled stacks likewise."""
        self._parts["stacks"].append(_part(columns, STACKS, {"t_ns", "track", "weight", "stack"}))

    def made(self) -> Timeline:
        """The timeline, every table in order."""
        found = {name: _together(name, parts) for name, parts in self._parts.items()}
        rows = {name: [track.get(name) for track in self._tracks] for name in TRACKS}
        return Timeline(tracks=pd.DataFrame(_part(rows, TRACKS, set(TRACKS))), **found, about=self.about)


def _part(columns: Mapping[str, Any], contract: Columns, needed: set[str]) -> dict[str, Any]:
    """The columns as the contract has them; those that are left out are empty."""
    if unknown := set(columns) - set(contract):
        raise TypeError(f"no column {min(unknown)}")
    if lacking := needed - set(columns):
        raise TypeError(f"no {min(lacking)}")
    rows = max((len(each) for each in columns.values() if not isinstance(each, str) and np.ndim(each)), default=1)
    return {name: _column(columns.get(name), kind, rows) for name, kind in contract.items()}


def _column(values: Cells, kind: str, rows: int) -> Cells:
    if kind == "str":
        if isinstance(values, pd.Categorical):
            return values
        if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
            return values.array
        if values is None or isinstance(values, str):
            return pd.Categorical.from_codes(np.zeros(rows, np.int8), categories=pd.Index([values or ""], dtype="str"))
        codes, words = pd.factorize(pd.Series(values, dtype="str"))
        return pd.Categorical.from_codes(codes, categories=pd.Index(words, dtype="str"))
    if values is None:
        values = {"int64": 0, "Int64": pd.NA, "float64": np.nan}[kind]
    if np.ndim(values) == 0:
        return pd.array([values] * rows, dtype="Int64") if kind == "Int64" else np.full(rows, values, kind)
    return pd.array(values, dtype="Int64") if kind == "Int64" else np.asarray(values, kind)


def _together(name: str, parts: list[dict[str, Any]]) -> pd.DataFrame:
    """One table of all parts, whose categories may differ, in order; column by column, since parts are large."""
    contract = TRACE_TABLES[name]
    if not parts:
        return pd.DataFrame(_part({each: [] for each in contract}, contract, set(contract)))
    columns: dict[str, Any] = {}
    for each, kind in contract.items():
        pieces = [part.pop(each) for part in parts]  # let go of, or all would be in memory twice
        columns[each] = pieces[0] if len(pieces) == 1 else _united(pieces, kind)
    parts.clear()
    keys = [columns[key] if up else -columns[key] for key, up in ORDER[name].items()]
    order = np.lexsort(keys[::-1])
    del keys
    if (order[1:] < order[:-1]).any():
        for each in contract:
            columns[each] = columns[each].take(order)
    parts.append(dict(columns))  # for more parts, and another call
    return pd.DataFrame(columns, copy=False)


def _united(pieces: list[Any], kind: str) -> Any:  # noqa: ANN401 (an array of the column's kind)
    from pandas.api.types import union_categoricals

    if kind == "str":
        united: pd.Categorical = union_categoricals(pieces)
        return united
    if kind == "Int64":
        return pd.concat([pd.Series(piece) for piece in pieces], ignore_index=True).array
    return np.concatenate(pieces)


def categories(numbers: Any, words: Sequence[str]) -> pd.Categorical:  # noqa: ANN401 (an array of numbers)
    """A column of words by their numbers; equal words may have several."""
    index = pd.Index(pd.unique(np.array(list(words) or [""], dtype=object)), dtype="str")
    places = index.get_indexer(pd.Index(list(words) or [""], dtype="str"))
    return pd.Categorical.from_codes(places[np.asarray(numbers, np.int64)], categories=index)


def or_none(numbers: Any) -> Any:  # noqa: ANN401 (arrays, the second with gaps)
    """Whole numbers, of which -1 is none."""
    return pd.arrays.IntegerArray(numbers.astype(np.int64), numbers < 0)


RUN, MEMBER, PROCESS, THREAD, CPU, DEVICE = "run", "member", "process", "thread", "cpu", "device"


class Registry:
    """Hands out tracks; what one source knows of a track fills in what another left open."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._numbers: dict[tuple[str, object], int] = {}
        self._guessed: set[int] = set()  # tracks of threads whose process is a guess

    def run(self, name: str = "") -> int:
        """The track of the launch itself: its scenes, slices and masks."""
        return self._track(RUN, "", name)

    def member(self, name: str) -> int:
        """The track of a member: its steps, phases, heartbeats and counters."""
        return self._track(MEMBER, name, name, member=name)

    def process(self, pid: int, name: str = "", member: str = "") -> int:
        """The track of a process."""
        parent = self.member(member) if member else None
        return self._track(PROCESS, pid, name, parent, pid=pid, member=member)

    def thread(self, tid: int, pid: int | None = None, name: str = "", member: str = "", guessed: bool = False) -> int:
        """The track of a thread: its states, system calls and operations.

        Where the process is `guessed`, it stands until another source knows it.
        """
        parent = None if pid is None else self.process(pid, member=member)
        is_new = (THREAD, tid) not in self._numbers
        number = self._track(THREAD, tid, name, parent, pid=pid, tid=tid, member=member)
        if guessed and is_new:
            self._guessed.add(number)
        elif not guessed and pid is not None and number in self._guessed:
            self._guessed.remove(number)
            self._making.tracks()[number] |= {"pid": pid, "parent": parent}
        return number

    def cpu(self, number: int) -> int:
        """The track of a CPU."""
        return self._track(CPU, number, f"cpu{number}", cpu=number)

    def device(self, name: str, member: str = "") -> int:
        """The track of a device, such as a stream of a GPU."""
        return self._track(DEVICE, name, name, self.member(member) if member else None, member=member)

    def _track(self, kind: str, key: object, name: str, parent: int | None = None, **about: Any) -> int:  # noqa: ANN401
        number = self._numbers.get((kind, key))
        if number is None:
            number = self._numbers[kind, key] = self._making.track(kind, name, parent, **about)
            return number
        known = self._making.tracks()[number]
        for column, value in {"name": name, "parent": parent, **about}.items():
            if known.get(column) in (None, "") and value not in (None, ""):
                known[column] = value
        return number


# When a timeline begins and ends, on which clock, and a part of it between two moments.

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
