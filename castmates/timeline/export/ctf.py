"""A timeline in the Common Trace Format 1.8, for Trace Compass and babeltrace2.

What the kernel does has the names and fields of LTTng's kernel tracer, and what programs do those of its tracer of user
space: two traces in one folder, on one clock. Switches are made from states: between two members that run on a CPU
stands who ran instead, where that is known, and otherwise the idle thread.
"""

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.files import make_folder, writing
from castmates.timeline.export.ctf_kernel import CONTEXT as KERNEL_CONTEXT
from castmates.timeline.export.ctf_kernel import LATER, kernel_streams
from castmates.timeline.export.ctf_placed import NAME, Placed, names_of, numbers_of, placed
from castmates.timeline.export.ctf_streams import NONE, Array, Labels, Lost, Records, Shape, Trace, metadata
from castmates.timeline.model import MONOTONIC, REALTIME, UNKNOWN, Timeline, clock_of, pairs_of

PROGRAM_CONTEXT = (("vpid", "<i4"), ("vtid", "<i4"), ("procname", f"S{NAME}"))
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


MARK = "castmates"  # in the environment of a trace: a folder with it is ours, and may be replaced
NAMES = {MONOTONIC: "monotonic", REALTIME: "realtime", UNKNOWN: "unknown"}  # of clocks, as LTTng has them


def write(timeline: Timeline, folder: Path) -> None:
    """Write the folder; it replaces one that this wrote before, and no other."""
    refuse_foreign(folder)
    make_folder(folder.parent)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}@{platform.node()}")
    with writing(folder):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            _write_traces(timeline, temporary)
            if folder.exists():
                shutil.rmtree(folder)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace what this did not write."""
    if not folder.exists():
        return
    marked = any(f"{MARK} =" in _text(file) for file in folder.glob("*/metadata")) if folder.is_dir() else False
    if not marked and not (folder.is_dir() and not any(folder.iterdir())):
        raise CastmatesError(f"{folder} is there already, and no trace that Castmates wrote; give another --output.")


def _text(file: Path) -> str:
    return file.read_bytes()[: 1 << 16].decode("utf-8", "replace")


def _write_traces(timeline: Timeline, folder: Path) -> None:
    folder.mkdir(parents=True)
    about = timeline.about
    common = {MARK: str(about.get("versions", {}).get("castmates", "")), "hostname": str(about.get("host", "unknown"))}
    kernel, rows, lost = Trace(folder / "kernel", KERNEL_CONTEXT), placed(timeline), _lost(timeline)
    for cpu, records in kernel_streams(timeline, rows):
        kernel.stream(f"channel0_{cpu}", cpu, records, lost.get(cpu, NONE))
    _finish(kernel, timeline, common | {"domain": "kernel", "sysname": "Linux", "tracer_name": "lttng-modules"})
    programs = Trace(folder / "ust", PROGRAM_CONTEXT)
    programs.stream("channel0", 0, program_records(timeline, rows))
    _finish(programs, timeline, common | {"domain": "ust", "tracer_name": "lttng-ust"})


def _lost(timeline: Timeline) -> dict[int, Lost]:
    """By CPU: when events were lost, and how many; 1 where it is not known how many."""
    own = timeline.instants[(timeline.instants["kind"] == "lost") & timeline.instants["cpu"].notna()]
    counts = own["value"].fillna(1).clip(lower=1).to_numpy(np.int64)
    cpu, t = numbers_of(own["cpu"]), own["t_ns"].to_numpy()
    return {number: (t[cpu == number], counts[cpu == number]) for number in np.unique(cpu).tolist()}


def _finish(trace: Trace, timeline: Timeline, env: dict[str, str]) -> None:
    """Write the metadata last; a trace without events is no trace."""
    if not trace.shapes:
        shutil.rmtree(trace.folder)
        return
    numbers: dict[str, str | int] = {**env, "tracer_major": 2, "tracer_minor": 13, "tracer_patchlevel": 0}
    clock, offset = _clock(timeline)
    (trace.folder / "metadata").write_text(metadata(trace, numbers, clock, offset), encoding="utf-8")


def _clock(timeline: Timeline) -> tuple[str, int]:
    """The clock's name, and what has to be added to it for the time of day."""
    clock = clock_of(timeline.about)
    if clock == REALTIME:
        return NAMES[clock], 0
    own, real = pairs_of(timeline.about, 0)[0]
    return NAMES[clock], 0 if real is None else real - own
