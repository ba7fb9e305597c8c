"""How long a recording of perf with so many events takes to become tables of a timeline, and how much memory.

Four threads on two CPUs take turns by a lock; of each turn the recording has switches, wake-ups, system calls, a page
fault and an interrupt. A process for each size reads the file, builds all tables and writes them.
"""

import argparse
import math
import time
from pathlib import Path

from benchmarks.apart import apart, most_megabytes
from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.timeline.model import Making, Registry
from castmates.timeline.perf.load import add_perf
from castmates.timeline.tables import write
from tests.unit.perf_maker import MEMBER, ping_pong

LARGEST = 10_000_000
LONGEST, SHARE, STEEPEST = 60.0, 2000.0, 1.2  # seconds, megabytes, and the exponent of the growth of time
SIZES = (1_000_000, 2_000_000, 4_000_000, LARGEST)


def main() -> None:
    """Make recordings of several sizes, and load each in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=SIZES)
    parser.add_argument("--load", type=Path, help="load this recording, and nothing else: for the separate processes")
    options = parser.parse_args()
    if options.load:
        load(options.load)
        return
    report = Report("Recordings of perf with many events", "timeline_perf")
    report.text("Read, turned into states, calls and moments, and written as Parquet, by one process.")
    rows, seconds_of = [], {}
    for events in options.events:
        say(f"{events} events")
        with scratch() as folder:
            file = folder / "perf.data"
            made, period, each = ping_pong()
            written = made.write(file, max(1, events // each), period)
            seconds, adding, megabytes = measured(file)
            size = file.stat().st_size
        seconds_of[events] = seconds
        cells = [f"{size / 1e6:.0f}", f"{adding:.1f}", f"{seconds:.1f}", f"{1e6 * seconds / written:.2f}"]
        rows.append([f"{written:,}", *cells, f"{megabytes:.0f}"])
        if events == LARGEST:
            found(report, seconds, megabytes)
    report.table(["events", "file (MB)", "read (s)", "with writing (s)", "µs an event", "memory at most (MB)"], rows)
    if len(seconds_of) > 1:
        few, many = min(seconds_of), max(seconds_of)
        steepness = math.log(seconds_of[many] / seconds_of[few]) / math.log(many / few)
        report.text(f"From {few:,} to {many:,} events the time grows with the power {steepness:.2f} of their number.")
        aim = Aim(most=STEEPEST)
        report.found(
            Finding(what="growth of a recording's time", value=steepness, unit="", count=1, of="sizes", aim=aim)
        )
    report.print()


def found(report: Report, seconds: float, megabytes: float) -> None:
    """Hold the largest recording against its aims."""
    time_aim, memory_aim, of = Aim(most=LONGEST), Aim(most=SHARE), "recording"
    what = "10 million events of perf"
    report.found(Finding(what=what, value=seconds, unit="s", count=1, of=of, aim=time_aim))
    report.found(Finding(what=f"memory for {what}", value=megabytes, unit="MB", count=1, of=of, aim=memory_aim))


def measured(file: Path) -> tuple[float, float, float]:
    """Seconds until all is written, those before the writing, and megabytes, of a process that loads a recording."""
    seconds, adding, megabytes = apart("benchmarks.timeline_perf", "--load", str(file))
    return seconds, adding, megabytes


def load(file: Path) -> None:
    """Load a recording, write its tables, and print how long both took and how much memory."""
    begin, making = time.monotonic(), Making()
    making.about |= {"sources": [add_perf(making, Registry(making), file, {MEMBER: "lead@0"})]}
    timeline = making.made()
    del making
    added = time.monotonic()
    write(timeline, file.with_suffix(""))
    print(time.monotonic() - begin, added - begin, most_megabytes())


if __name__ == "__main__":
    run(main)
