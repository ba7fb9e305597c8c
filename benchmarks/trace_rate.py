"""How many events a second a trace's recording bears without loss, and how much it slows the program down.

On each CPU two threads take turns, and work between them: the less work, the more events. The same number of turns is
timed with the recording of a trace and without it, one after the other.
"""

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.common import Report, compiled, percent, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.errors import CastmatesError
from castmates.linux.tracing_rights import FAMILIES, arguments, rights
from castmates.runner.tracing.recorded import PerfRecorder
from castmates.timeline.perf.reading import Recording, read

WORK = (300_000, 60_000, 20_000, 6_000, 2_000, 500, 0)  # steps of a loop between two turns of a thread
TRIED = 200  # turns from which their number is found
AIM = 500_000  # events a second


@dataclass(frozen=True)
class Pair:
    """The same turns without a recording and with it."""

    without: float  # seconds
    recorded: float
    events: int
    lost: int

    @property
    def rate(self) -> float:
        """Events a second, those that were lost too."""
        return (self.events + self.lost) / self.recorded

    @property
    def slowdown(self) -> float:
        """How many times as long it took."""
        return self.recorded / self.without


def main() -> None:
    """Record at growing rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="that the turns take without a recording, about")
    parser.add_argument("--pairs", type=int, default=3, help="repetitions for each rate")
    options = parser.parse_args()
    can = rights()
    families = [each for each in FAMILIES if each in can.families()]
    if not families:
        raise CastmatesError(f"Nothing can be recorded here: {'; '.join(can.reasons)}.")
    report = Report("Events a second that a trace's recording bears", "trace_rate")
    recorded = f"Recorded as a trace records: {', '.join(families)}, by perf {can.perf}."
    report.text(f"{recorded} Events that were lost count too.")
    found: dict[int, list[Pair]] = {}
    with scratch() as folder:
        program = compiled(Path(__file__).with_suffix(".c"), folder, "-pthread")
        record = partial(arguments, families, folder / "perf.data", rights=can)
        for work in WORK:
            say(f"{work} steps of work a turn")
            turns = turns_for(program, work, options.seconds)
            found[work] = [pair(program, turns, work, folder, record) for _ in range(options.pairs)]
    describe(report, found)
    report.print()


def turns_for(program: Path, work: int, seconds: float) -> int:
    """How many turns take so long, about."""
    with started(program, TRIED, work) as process:
        return max(TRIED, round(TRIED * seconds / timed(process)))


def pair(program: Path, turns: int, work: int, folder: Path, record: Callable[..., list[str]]) -> Pair:
    """Time the turns without a recording, then with it."""
    with started(program, turns, work) as process:
        without = timed(process)
    file = folder / "perf.data"
    with started(program, turns, work) as process:
        recorder = PerfRecorder(lambda control: record(pids=[process.pid], control=control), file)
        try:
            if not (recorder.start() and recorder.switch_on()):
                raise CastmatesError(f"The recording did not begin: {recorder.events.reason}.")
            seconds = timed(process)
            recorder.switch_off()
            events = recorder.finish(lambda: time.sleep(0.1))
        finally:
            recorder.kill()
    if events.file is None:
        raise CastmatesError(f"Nothing was recorded: {events.reason}.")
    recording = read(events.file)
    return Pair(without, seconds, *counted(recording))


@contextmanager
def started(program: Path, turns: int, work: int) -> Iterator[subprocess.Popen[str]]:
    """The program with all its threads there, waiting; ended afterwards."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program, str(turns), str(work)], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise CastmatesError("The program that takes turns ended before it began.")
            yield process
        except BaseException:
            process.kill()
            raise


def timed(process: subprocess.Popen[str]) -> float:
    """Let it take its turns, and return how many seconds that took."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    words = process.stdout.readline()
    if not words:
        raise CastmatesError("The program that takes turns ended within them.")
    return float(words)


def counted(recording: Recording) -> tuple[int, int]:
    """How many events there are, and how many were lost."""
    events = len(recording.switches["time"]) + sum(len(table["time"]) for table in recording.samples.values())
    return events, max(int(recording.losses["count"].sum()), recording.lost_samples)


def describe(report: Report, found: dict[int, list[Pair]]) -> None:
    """A line for each rate, and the highest one at which nothing was lost."""
    rows = []
    for work, pairs in found.items():
        lost = sum(each.lost for each in pairs)
        share = lost / (lost + sum(each.events for each in pairs))
        cells = [f"{median(each.rate for each in pairs):,.0f}", f"{lost:,}", percent(share, 2)]
        rows.append([f"{work:,}", *cells, f"{median(each.slowdown for each in pairs):.2f}"])
    report.table(["steps of work a turn", "events a second", "lost", "share", "time with / without"], rows)
    report.text(
        f"Medians of {len(next(iter(found.values())))} pairs; lost events are summed. "
        "The program has all CPUs, and perf writes its file on the same ones."
    )
    whole = [median(each.rate for each in pairs) for pairs in found.values() if not any(each.lost for each in pairs)]
    most = max((each.rate for pairs in found.values() for each in pairs), default=0.0)
    report.found(
        Finding(
            what="events a second without loss", value=max(whole, default=0.0), unit="/s", count=1, of="runs",
            aim=Aim(least=AIM),
        ),
        Finding(what="events a second at most, with losses", value=most, unit="/s", count=1, of="runs"),
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
