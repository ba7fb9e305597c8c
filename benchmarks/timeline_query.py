"""How long queries over a trace of so many rows take, and how much memory: each named query, in processes of its own.

The trace is one of tests/unit/timeline_maker.py: eight threads over thirty seconds, whose states, operations, system
calls, wake-ups and stacks are so many rows together.
"""

import argparse
import math
import time
from pathlib import Path

from benchmarks.apart import apart, most_megabytes
from benchmarks.common import Report, run, say, scratch
from benchmarks.verdicts import Aim, Finding
from castmates.timeline.queries.asking import ask, named, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write
from tests.unit.timeline_maker import made

LARGEST, SECONDS, MEGABYTES = 10_000_000, 60.0, 2000.0  # rows, and what a query over them may take
MILLION = 1_000_000
Measured = tuple[float, float]  # seconds, megabytes


def main() -> None:
    """Make traces of several sizes, and ask each, a process per query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[MILLION, 2 * MILLION, 4 * MILLION, LARGEST])
    parser.add_argument("--ask", nargs=2, metavar=("FOLDER", "NAME"), help="ask this one, for the separate processes")
    parser.add_argument("--make", nargs=2, metavar=("FOLDER", "ROWS"), help="make a trace, for the separate processes")
    options = parser.parse_args()
    if options.ask:
        print(*ask_one(Path(options.ask[0]), options.ask[1]))
    elif options.make:
        write(made(int(options.make[1]), seconds=30, threads=8), Path(options.make[0]))
    else:
        measure(options.rows)


def measure(sizes: list[int]) -> None:
    """Every named query at every size."""
    report = Report("Queries over traces", "timeline_query")
    report.text("Seconds of each named query, with the opening of the trace and the writing of the answer's parts.")
    found: dict[str, dict[int, Measured]] = {name: {} for name in named()}
    for rows in sizes:
        say(f"{rows} rows")
        with scratch() as folder:
            apart("benchmarks.timeline_query", "--make", str(folder / "t"), str(rows))
            for name in found:
                seconds, megabytes = apart("benchmarks.timeline_query", "--ask", str(folder / "t"), name)
                found[name][rows] = seconds, megabytes
    head = ["query", *(f"{rows / MILLION:g} M rows (s)" for rows in sizes), "growth", "memory at most (MB)"]
    report.table(head, [row(name, sizes, each) for name, each in found.items()])
    if LARGEST in sizes:
        aims(report, {name: each[LARGEST] for name, each in found.items()})
    report.print()


def row(name: str, sizes: list[int], each: dict[int, Measured]) -> list[str]:
    """A line of the table; growth: the exponent of seconds by rows, from the smallest trace to the largest."""
    first, last = min(sizes), max(sizes)
    growth = math.log(each[last][0] / each[first][0]) / math.log(last / first) if last > first else math.nan
    seconds = [f"{each[rows][0]:.2f}" for rows in sizes]
    return [name, *seconds, f"{growth:.2f}", f"{max(megabytes for _, megabytes in each.values()):.0f}"]


def aims(report: Report, largest: dict[str, Measured]) -> None:
    """Hold the slowest and the largest query of ten million rows against what is wanted."""
    slowest, widest = max(largest.values()), max(megabytes for _, megabytes in largest.values())
    name = max(largest, key=lambda name: largest[name][0])
    what = f"the slowest query of 10 million rows ({name})"
    report.found(
        Finding(what=what, value=slowest[0], unit="s", count=1, of="trace", aim=Aim(most=SECONDS)),
        Finding(what="memory for it", value=widest, unit="MB", count=1, of="trace", aim=Aim(most=MEGABYTES)),
    )


def ask_one(folder: Path, name: str) -> Measured:
    """Ask one query, and read its answer part by part."""
    begin, query = time.monotonic(), query_of(name)
    with database([TraceFolder("t", folder)]) as connection:
        for _ in ask(connection, query.sql, values_of(query, [])):
            pass
    return time.monotonic() - begin, most_megabytes()


if __name__ == "__main__":
    run(main)
