"""The ways from Python to the counters: what opening and reading take, whether they agree, what a switch costs.

All ways are tried in turns within one run: read the ratios.
"""

import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which
from statistics import median

from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from castmates import project
from castmates.counters.topdown.perf_reading import parse
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.inside import Counters, open_counters, papi
from castmates.inside.events import event_of
from castmates.linux.perf_event import Target, open_event
from castmates.machine.lock import machine_lock
from castmates.trials.counters.program import known, quiet_cpu
from castmates.workloads import environments

EVENTS = ("page-faults", "task-clock", "context-switches", "cpu-migrations")
READS, BATCHES = 400, 20  # in a portion
THREADS = 8  # besides the first one
PAGES, SPIN_S = 20_000, 0.2  # of the work that all ways count
TRIPS = 3_000  # of a portion of pingpong
Microseconds = dict[str, list[float]]  # what -> each time that it took


def main() -> None:
    """Measure in turns until the time is out, and print the page's part."""
    arguments = arguments_of(__doc__, minutes=1.5).parse_args()
    report, order = Report("The ways from Python to the counters", "counter_ways"), random.Random(arguments.seed)
    program = environments.build(environments.NATIVE, project.ENVIRONMENTS, cache_folder()) / "bin" / "known"
    took: dict[tuple[str, int], Microseconds] = {}
    counted: list[dict[str, dict[str, float]]] = []
    switched: dict[tuple[int, bool], list[float]] = {}
    with machine_lock("benchmarks.counter_ways", wait=True), scratch() as place:
        for number in TimeBox(arguments.minutes).portions():
            say(f"portion {number + 1}")
            for threads in (0, THREADS):
                with sleepers(threads):
                    for way in order.sample(ways(), len(ways())):
                        times_of(way, took.setdefault((way, threads), {}))
            counted.append(agreement(place))
            switch_costs(program, order, switched)
    print_costs(report, took)
    print_agreement(report, counted)
    print_switches(report, switched)
    report.print()


def ways() -> list[str]:
    """What can be tested here."""
    return ["getrusage", "perf", *([] if papi.why_not() else ["papi"]), *(["perf stat"] if which("perf") else [])]


@contextmanager
def sleepers(count: int) -> Iterator[None]:
    """Additional threads, which wait."""
    over = threading.Event()
    threads = [threading.Thread(target=over.wait, daemon=True) for _ in range(count)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in threads:
            one.join()


def times_of(way: str, took: Microseconds) -> None:
    """Open, read and close once in this way, and add what each took."""
    if way == "perf stat":
        took.setdefault("open and close", []).append(timed(perf_stat_once))
        return
    if way == "getrusage":
        took.setdefault("read", []).append(timed(lambda: resource.getrusage(resource.RUSAGE_SELF), READS))
        return
    opened: list[Counters] = []
    took.setdefault("open", []).append(timed(lambda: opened.append(open_counters(EVENTS, way))))
    took.setdefault("read", []).append(timed(opened[0].read, READS))
    took.setdefault("close", []).append(timed(opened[0].close))


def timed(do: Callable[[], object], times: int = 1) -> float:
    """Microseconds that it takes; where it is done many times, the mean of the batch that was disturbed least."""
    batch, means = max(1, times // BATCHES), []
    for _ in range(times // batch):
        begin = time.perf_counter_ns()
        for _ in range(batch):
            do()
        means.append((time.perf_counter_ns() - begin) / 1e3 / batch)
    return min(means)


def perf_stat_once() -> None:
    """Attach perf stat to ourselves and let it end."""
    subprocess.run(
        ["perf", "stat", "-x,", "-e", ",".join(EVENTS), "-p", str(os.getpid()), "true"], capture_output=True, check=True
    )


def agreement(place: Path) -> dict[str, dict[str, float]]:
    """Have a process count the same work in all ways at once, from inside and, with perf stat, from outside."""
    command = [sys.executable, "-m", "benchmarks.counter_ways_work", str(PAGES), str(SPIN_S)]
    log = place / "perf"
    if which("perf"):
        command = ["perf", "stat", "-j", "-o", str(log), "-e", "page-faults,task-clock", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CastmatesError(
            f"the work that is counted failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
        )
    said: dict[str, dict[str, float]] = json.loads(done.stdout)
    if log.exists():
        lines = {line.event.partition(":")[0]: line for line in parse(log.read_text()).lines}
        said["perf stat (all of the process)"] = {
            event: line.value * (1e6 if line.unit == "msec" else 1)
            for event, line in lines.items()
            if line.value is not None
        }
    return said


def switch_costs(program: Path, order: random.Random, switched: dict[tuple[int, bool], list[float]]) -> None:
    """Time round trips of two threads under so many counters, inherited or not, in random order."""
    cases = [(0, False), *((count, inherited) for count in (1, 2, 4) for inherited in (False, True))]
    with known([str(program), "pingpong", f"cpu={quiet_cpu()}"]) as process:
        process.go(TRIPS)
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        for count, inherited in order.sample(cases, len(cases)):
            with ExitStack() as closing:
                for event in EVENTS[:count]:
                    for tid in threads:
                        fd = open_event(event_of(event).attr, Target(tid, inherit=inherited))
                        closing.callback(os.close, fd)
                used = process.go(TRIPS).cpu_ns / 1e3
            switched.setdefault((count, inherited), []).append(used / TRIPS / 2)


def print_costs(report: Report, took: dict[tuple[str, int], Microseconds]) -> None:
    """The first table."""
    base = min(took["getrusage", 0]["read"])
    report.text(
        f"Opening, reading and closing four kernel events ({', '.join(EVENTS)}) of this process, alone and "
        f"with {THREADS} further threads, in µs (the least disturbed time of each); a read is `read()`, also as a "
        "multiple of `getrusage`."
    )
    rows = []
    for (way, threads), parts in sorted(took.items(), key=lambda one: (one[0][1], ways().index(one[0][0]))):
        cells = [f"{min(parts[part]):.1f}" if part in parts else "" for part in ("open", "read", "close")]
        if "open and close" in parts:
            cells = [f"{min(parts['open and close']):.0f} with the close", "only by ending it, or each ms by -I", ""]
        ratio = f"{min(parts['read']) / base:.1f}" if "read" in parts else ""
        rows.append([way, str(threads + 1), *cells, ratio])
    report.table(["way", "threads", "open", "read", "close", "read ÷ getrusage"], rows)
    if why := papi.why_not():
        report.text(f"PAPI was not tried: {why}.")
        return
    one = open_counters(EVENTS, "papi")
    one.close()
    if one.misses:
        report.text(f"Of PAPI: {one.misses}. So its readings do not grow with the threads.")


def print_agreement(report: Report, counted: Sequence[dict[str, dict[str, float]]]) -> None:
    """The second table."""
    report.text(
        f"The same work counted in all ways at once: {PAGES} pages are touched, half of them by another thread, and "
        f"each of two threads spins for {SPIN_S:g} s. Medians of {len(counted)} runs; the last row includes Python's "
        "own start."
    )
    rows = []
    for way in counted[0]:
        cells = []
        for event in ("page-faults", "task-clock"):
            found = [one[way][event] for one in counted if event in one.get(way, {})]
            truth = [one["getrusage"][event] for one in counted]
            cells += (
                ["not counted", ""]
                if not found
                else [
                    f"{median(found):.0f}" if event == "page-faults" else f"{median(found) / 1e6:.1f} ms",
                    percent(median(a / b - 1 for a, b in zip(found, truth, strict=False)), 2),
                ]
            )
        rows.append([way, *cells])
    report.table(["way", "page faults", "off getrusage", "task clock", "off the process's clock"], rows)


def print_switches(report: Report, switched: dict[tuple[int, bool], list[float]]) -> None:
    """The third table."""
    base = switched[0, False]
    report.text(
        "The cost of counters for the counted program: a context switch between two threads that wake each other over "
        "pipes on one CPU, in µs of their CPU time, with this many kernel events of each thread; medians, the last two "
        "of the differences and ratios to the time without events in the same turn."
    )
    rows = []
    for (count, inherited), each in sorted(switched.items()):
        ratio = median(after / before for before, after in zip(base, each, strict=True))
        more = median(after - before for before, after in zip(base, each, strict=True))
        rows.append([str(count), "yes" if inherited else "no", f"{median(each):.2f}", f"{more:+.2f}", f"{ratio:.2f}"])
    report.table(["events", "inherited", "µs a switch", "more than without", "ratio"], rows)


if __name__ == "__main__":
    run(main)
