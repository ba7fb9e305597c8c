"""How long a timeline of so many rows takes to export, how large the files are, and how much memory that takes.

The rows are states, system calls, operations, wake-ups and sampled stacks of eight threads. Each export is a process
that reads the tables of a trace and writes one file. For comparison, Perfetto's own builder writes intervals packet by
packet.
"""

import argparse
import time
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from benchmarks.apart import apart, most_megabytes
from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.files import size_of
from castmates.timeline.converting import FORMATS
from castmates.timeline.model import Timeline
from castmates.timeline.tables import read, write
from tests.unit.timeline_maker import made

THREADS, TRACED = 8, 30.0  # seconds
LARGEST = 10_000_000
LONGEST, SHARE = 60.0, 2000.0  # seconds and megabytes that the largest may take
GROWTH = 1.5  # how much longer a row may take in the largest timeline than in the smallest
CHROME = 2_000_000  # rows up to which Chrome's JSON, which few readers open when it is large, is written too
PACKET_BY_PACKET = 50_000


def main() -> None:
    """Make timelines of several sizes, and export each in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000, 4_000_000, LARGEST])
    parser.add_argument("--export", nargs=2, metavar=("FOLDER", "FORMAT"), help="export this, for separate processes")
    options = parser.parse_args()
    if options.export:
        export(Path(options.export[0]), options.export[1])
        return
    report = Report("Timelines with many rows, exported", "timeline_export")
    rows, of_perfetto = [], {}
    for count in options.rows:
        with scratch() as folder:
            say(f"{count} rows: making them")
            timeline = made(count, seconds=TRACED, threads=THREADS)
            there = sum(len(timeline.table(name)) for name in ("intervals", "instants", "samples", "stacks"))
            write(timeline, folder)
            del timeline
            for name in FORMATS:
                if name == "chrome" and count > CHROME:
                    continue
                say(f"{count} rows as {name}")
                reading, writing, size, memory = measured(folder, name)
                each = 1e6 * writing / there
                rows.append([name, f"{there:,}", f"{reading:.1f}", f"{writing:.1f}", f"{each:.2f}",
                             f"{size / 1e6:.0f}", f"{size / there:.1f}", f"{memory:.0f}"])  # fmt: skip
                if name == "perfetto":
                    of_perfetto[count] = writing, memory, each
    report.table(
        ["format", "rows", "read (s)", "written (s)", "µs a row", "file (MB)", "bytes a row", "memory (MB)"], rows
    )
    report.text(f"Perfetto's own builder, packet by packet: {packet_by_packet():.1f} µs an interval.")
    found(report, of_perfetto)
    report.print()


def found(report: Report, of_perfetto: dict[int, tuple[float, float, float]]) -> None:
    """Hold the largest timeline against its aims."""
    if LARGEST not in of_perfetto:
        return
    seconds, memory, each = of_perfetto[LARGEST]
    first = of_perfetto[min(of_perfetto)][2]
    for what, value, unit, aim in (
        ("10 million rows as Perfetto's format", seconds, "s", Aim(most=LONGEST)),
        ("memory for them", memory, "MB", Aim(most=SHARE)),
        ("growth of the time a row takes", each / first, "times", Aim(most=GROWTH)),
    ):
        report.found(Finding(what=what, value=value, unit=unit, count=1, of="timeline", aim=aim))


def measured(folder: Path, name: str) -> tuple[float, float, int, float]:
    """Seconds that a process reads and writes, the bytes it writes, and the megabytes of memory it takes at most."""
    reading, writing, memory = apart("benchmarks.timeline_export", "--export", str(folder), name)
    return reading, writing, size_of(folder / f"exported{FORMATS[name].suffix}"), memory


def export(folder: Path, name: str) -> None:
    """Export a trace, and print how long it took and how much memory."""
    begin = time.monotonic()
    timeline: Timeline = read(folder)
    middle = time.monotonic()
    FORMATS[name].write(timeline, folder / f"exported{FORMATS[name].suffix}")
    print(middle - begin, time.monotonic() - middle, most_megabytes())


def packet_by_packet() -> float:
    """Microseconds an interval takes if Perfetto's builder writes its begin and its end."""
    rows = made(3 * PACKET_BY_PACKET).intervals.head(PACKET_BY_PACKET)
    cells = [rows[name].tolist() for name in ("t0_ns", "t1_ns", "track", "name", "kind", "detail")]
    begin = time.monotonic()
    with scratch() as folder, (folder / "trace").open("wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for first, last, track, name, kind, detail in zip(*cells, strict=True):
            for at, type_ in ((first, TrackEvent.TYPE_SLICE_BEGIN), (last, TrackEvent.TYPE_SLICE_END)):
                packet = builder.create_packet()
                packet.timestamp, packet.trusted_packet_sequence_id = at, 1
                packet.track_event.type, packet.track_event.track_uuid = type_, track + 1
                if type_ == TrackEvent.TYPE_SLICE_BEGIN:
                    packet.track_event.name = name
                    packet.track_event.categories.append(kind)
                    packet.track_event.debug_annotations.add(name="detail", string_value=detail)
                builder.write_packet(packet)
    return 1e6 * (time.monotonic() - begin) / len(rows)


if __name__ == "__main__":
    run(main)
