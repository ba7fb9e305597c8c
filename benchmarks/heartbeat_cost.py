"""What one heartbeat costs, in C and in Python, against an empty loop taken in turns in the same run."""

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from time import perf_counter_ns

from benchmarks.common import Report, run
from castmates.errors import CastmatesError
from castmates.workloads.heartbeat import VARIABLE, Writer, create
from castmates.workloads.native.build import compile_flags, compile_program, find_compiler

ROUNDS = 30
CALLS = 10_000

Round = tuple[float, float, float]  # ns per call: empty loop, beat without a runner, beat with one


def main() -> None:
    """Measure and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    report = Report("What a heartbeat costs", "heartbeat_cost")
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="castmates-cost-", dir=shared) as directory:
        rows = {"C": in_c(Path(directory)), "Python": in_python(Path(directory) / "python.beats")}
    report.text("ns per call, median of the rounds; ratio = median of the ratios to the empty loop within a round.")
    header = ["language", "empty loop", "no runner", "ratio", "beat", "ratio"]
    report.table(header, [[language, *cells(rounds)] for language, rounds in rows.items()])
    report.print()


def cells(rounds: list[Round]) -> list[str]:
    """A row of the table."""
    empty, unheard, heard = (statistics.median(column) for column in zip(*rounds, strict=True))
    return [f"{empty:.2f}", f"{unheard:.2f}", f"{ratio(rounds, 1):.1f}", f"{heard:.2f}", f"{ratio(rounds, 2):.1f}"]


def ratio(rounds: list[Round], column: int) -> float:
    """Return the median over the rounds of this column against the empty loop."""
    return statistics.median(values[column] / values[0] for values in rounds)


def in_c(directory: Path) -> list[Round]:
    """Compile the timing program and run it against a heartbeat file of its own."""
    compiler = find_compiler()
    if compiler is None:
        raise CastmatesError("There is no working C compiler: install one or set CC.")
    program, beats = directory / "heartbeat_cost", directory / "c.beats"
    compile_program(Path(__file__).with_suffix(".c"), program, compiler, compile_flags(compiler))
    create(beats)
    done = subprocess.run(
        [program], env={**os.environ, VARIABLE: str(beats)}, stdout=subprocess.PIPE, text=True, check=True
    )
    rounds = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return [(empty, unheard, heard) for empty, unheard, heard in rounds]


def in_python(beats: Path) -> list[Round]:
    """Time the same three loops in this interpreter."""
    create(beats)
    unheard, heard = Writer(None), Writer(beats)
    return [(time_empty(), time_calls(unheard.beat), time_calls(heard.beat)) for _ in range(ROUNDS)]


def time_empty() -> float:
    """Return the ns of one turn of a loop that does nothing."""
    begin = perf_counter_ns()
    for _ in repeat(None, CALLS):
        pass
    return (perf_counter_ns() - begin) / CALLS


def time_calls(call: Callable[[], None]) -> float:
    """Return the ns of one call in the same loop."""
    begin = perf_counter_ns()
    for _ in repeat(None, CALLS):
        call()
    return (perf_counter_ns() - begin) / CALLS


if __name__ == "__main__":
    run(main)
