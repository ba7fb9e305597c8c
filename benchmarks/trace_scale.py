"""How long a trace of so many events takes to read and to write as a table, and how much memory that takes.

In a trace of TensorFlow (an XSpace) the events are calls of operations on eight threads, a tenth of them inside others,
in steps of a thousand; trace_scale_torch.py describes that of PyTorch (JSON).
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks import trace_scale_torch
from benchmarks.apart import apart, most_megabytes
from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.runner.profiles import tables
from castmates.runner.profiles.rounds import Taken
from castmates.study.spec import UNMANAGED, Scene
from castmates.traces.reading import read as read_any
from castmates.workloads.tfmodels.xspace import STEP
from tests.unit.trace_maker import event_names, field, plane

THREADS, OPERATIONS, IN_A_STEP = 8, 400, 1000
LONGEST, SHARE = 120.0, 2000.0  # seconds and megabytes that ten million events may take
LARGEST = 10_000_000


def main() -> None:
    """Make traces of several sizes, and read each in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000, LARGEST])
    parser.add_argument("--read", type=Path, help="read this trace, and nothing else: for the separate processes")
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    report = Report("Traces with many events", "trace_scale")
    report.text("Read, divided among all that works at a time, and written as `operations.parquet`, by one process.")
    for framework, name, writer in WRITERS:
        rows = []
        for events in options.events:
            say(f"{framework}, {events} events")
            with scratch() as folder:
                size = writer(folder / name, events)
                seconds, megabytes = measured(folder / name)
            each = f"{1e6 * seconds / events:.2f}"
            rows.append([f"{events:,}", f"{size / 1e6:.1f}", f"{seconds:.1f}", each, f"{megabytes:.0f}"])
            if events == LARGEST:
                found(report, framework, seconds, megabytes)
        report.text(f"{framework}:")
        report.table(["events", "file (MB)", "seconds", "µs an event", "memory at most (MB)"], rows)
    report.print()


def found(report: Report, framework: str, seconds: float, megabytes: float) -> None:
    """Hold the largest trace against its aims."""
    what = "10 million events" if framework == "TensorFlow" else f"10 million events of {framework}"
    of, time, memory = "trace", Aim(most=LONGEST), Aim(most=SHARE)
    report.found(Finding(what=what, value=seconds, unit="s", count=1, of=of, aim=time))
    what = "memory for them" if framework == "TensorFlow" else f"memory for those of {framework}"
    report.found(Finding(what=what, value=megabytes, unit="MB", count=1, of=of, aim=memory))


def make(file: Path, events: int) -> int:
    """Write a trace; its size in bytes."""
    steps = max(1, events // IN_A_STEP)
    length = 1000 * IN_A_STEP // THREADS  # picoseconds of a step
    names = [STEP, *(f"model/layer_{number}/MatMul:MatMul" for number in range(OPERATIONS))]
    marks = _line(
        b"python", np.ones(steps, np.int64), length * np.arange(steps, dtype=np.int64), np.full(steps, length)
    )
    each = events // THREADS
    offsets = 1000 * np.arange(each, dtype=np.int64)
    lengths = np.where(np.arange(each) % 10 == 0, 1900, 900)  # every tenth lasts into the next, which it then calls
    lines = [
        _line(f"tf_Compute/{number}".encode(), 2 + (np.arange(each) * 7 + number) % 120, offsets, lengths)
        for number in range(THREADS)
    ]
    content = plane(b"/host:CPU", [marks, *lines], event_names(names))
    return file.write_bytes(content)


def _line(name: bytes, kinds: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> bytes:
    """A line whose events all take 19 bytes: numbers of variable length may have leading zeros."""
    rows = np.zeros((len(kinds), 19), np.uint8)
    rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = 0x22, 17, 0x08, kinds
    rows[:, 4] = 0x10
    _varints(rows[:, 5:13], offsets)
    rows[:, 13] = 0x18
    _varints(rows[:, 14:19], lengths)
    return field(2, name) + rows.tobytes()


def _varints(places: np.ndarray, values: np.ndarray) -> None:
    width = places.shape[1]
    for place in range(width):
        places[:, place] = (values >> (7 * place)) & 0x7F | (0x80 if place < width - 1 else 0)


def measured(file: Path) -> tuple[float, float]:
    """Seconds and megabytes of a process that reads the trace."""
    seconds, megabytes = apart("benchmarks.trace_scale", "--read", str(file))
    return seconds, megabytes


def read(file: Path) -> None:
    """Read a trace, write its table, and print how long it took and how much memory."""
    begin = time.monotonic()
    trace = read_any(file).trace
    scene = Scene(name="alone", kind="alone", mix="", active=(), placebos=(), partition=UNMANAGED)
    common = dict.fromkeys(("study", "cohort", "scene", "kind", "mix", "partition", "member", "platform"), "x")
    aligned = tables.Aligned(trace, Taken(scene, 1), 0, 0, common | {"launch": 1, "round": 1})
    tables.write_operations(iter([aligned]), file.with_suffix(".parquet"))
    print(time.monotonic() - begin, most_megabytes())


WRITERS = (("TensorFlow", "x.xplane.pb", make), ("PyTorch", "x.pt.trace.json.gz", trace_scale_torch.make))

if __name__ == "__main__":
    run(main)
