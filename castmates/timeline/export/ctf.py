"""A timeline in the Common Trace Format 1.8, for Trace Compass and babeltrace2.

What the kernel does has the names and fields of LTTng's kernel tracer, and what programs do those of its tracer of user
space: two traces in one folder, on one clock. Switches are made from states: between two members that run on a CPU
stands who ran instead, where that is known, and otherwise the idle thread.
"""

import os
import platform
import shutil
from pathlib import Path

import numpy as np

from castmates.errors import CastmatesError
from castmates.files import make_folder, writing
from castmates.timeline.export.clocks import MONOTONIC, REALTIME, UNKNOWN, clock_of, pairs_of
from castmates.timeline.export.ctf_kernel import CONTEXT as KERNEL_CONTEXT
from castmates.timeline.export.ctf_kernel import kernel_streams
from castmates.timeline.export.ctf_metadata import metadata
from castmates.timeline.export.ctf_placed import numbers_of, placed
from castmates.timeline.export.ctf_programs import CONTEXT as PROGRAM_CONTEXT
from castmates.timeline.export.ctf_programs import program_records
from castmates.timeline.export.ctf_streams import NONE, Lost, Trace
from castmates.timeline.model import Timeline

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
