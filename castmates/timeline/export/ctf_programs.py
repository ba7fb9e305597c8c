"""What programs do, as events of user space: begins and ends of intervals, moments, and readings of numbers."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from castmates.timeline.export.ctf_kernel import LATER
from castmates.timeline.export.ctf_placed import NAME, Placed, names_of, numbers_of
from castmates.timeline.export.ctf_streams import Array, Labels, Records, Shape
from castmates.timeline.model import Timeline

CONTEXT = (("vpid", "<i4"), ("vtid", "<i4"), ("procname", f"S{NAME}"))
PROVIDER = "castmates"
BEYOND = 1 << 23  # tracks that are no threads have numbers from here: no thread has a larger one
ENDS, BEGINS = 0, 1  # at the same moment what ends comes first


def program_records(timeline: Timeline, placed: Placed) -> Sequence[Records]:
    """All events, in any order; what the kernel does is among them where it has no CPU."""
    return [
        *_intervals(timeline, placed.intervals_left),
        *_instants(timeline, placed.instants_left),
        *_samples(timeline),
    ]


def _intervals(timeline: Timeline, rows: Array) -> Iterator[Records]:
    table = timeline.intervals[rows]
    for kind in _kinds(table):
        own = table[table["kind"] == kind]
        context = _context(timeline, own["track"].to_numpy())
        name, detail = _labels(own, "name"), _labels(own, "detail")
        row, depth = np.arange(len(own)), own["depth"].to_numpy()
        empty = (own["t0_ns"] == own["t1_ns"]).to_numpy()
        columns = context | {"name": name[1], "detail": detail[1], "value": own["value"].to_numpy()}
        # Of what begins at a moment the outermost comes first, and of what ends the innermost; an interval without a
        # length ends right after it began.
        begin = (depth << 40) + 2 * row + LATER * ~empty
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}_begin", (("name", name[0]), ("detail", detail[0]), ("value", "<f8"))),
            own["t0_ns"].to_numpy(),
            np.full(len(own), BEGINS),
            begin,
            columns,
        )
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}_end", (("name", name[0]),)),
            own["t1_ns"].to_numpy(),
            np.where(empty, BEGINS, ENDS),
            np.where(empty, begin + 1, (-depth << 40) + row),
            columns,
        )


def _instants(timeline: Timeline, rows: Array) -> Iterator[Records]:
    table = timeline.instants[rows]
    for kind in _kinds(table):
        own = table[table["kind"] == kind]
        name, detail = _labels(own, "name"), _labels(own, "detail")
        columns = _context(timeline, own["track"].to_numpy()) | {"name": name[1], "detail": detail[1]}
        yield Records(
            Shape(f"{PROVIDER}:{_word(kind)}", (("name", name[0]), ("detail", detail[0]), ("value", "<f8"))),
            own["t_ns"].to_numpy(),
            np.full(len(own), BEGINS),
            np.arange(len(own)),
            columns | {"value": own["value"].to_numpy()},
        )


def _samples(timeline: Timeline) -> Iterator[Records]:
    own = timeline.samples
    name, unit = _labels(own, "name"), _labels(own, "unit")
    yield Records(
        Shape(f"{PROVIDER}:sample", (("name", name[0]), ("value", "<f8"), ("unit", unit[0]))),
        own["t_ns"].to_numpy(),
        np.full(len(own), BEGINS),
        np.arange(len(own)),
        _context(timeline, own["track"].to_numpy())
        | {"name": name[1], "unit": unit[1], "value": own["value"].to_numpy()},
    )


def _kinds(table: pd.DataFrame) -> list[str]:
    return list(table["kind"].cat.remove_unused_categories().cat.categories)


def _word(kind: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in kind)


def _labels(table: pd.DataFrame, column: str) -> tuple[Labels, Array]:
    """The words of a column as an enumeration, and the number of each row's."""
    words = table[column].cat.remove_unused_categories()
    return Labels(column, list(words.cat.categories) or [""]), words.cat.codes.to_numpy()


def _context(timeline: Timeline, track: Array) -> dict[str, Array]:
    """The thread of each row, or a number beyond those of threads."""
    tracks = timeline.tracks
    own = tracks["track"].to_numpy() + BEYOND
    tid = np.where(tracks["tid"].isna(), own, numbers_of(tracks["tid"]))
    pid = np.where(tracks["pid"].isna(), tid, numbers_of(tracks["pid"]))
    names = names_of(tracks)
    return {"c_vtid": tid[track], "c_vpid": pid[track], "c_procname": names[track]}
