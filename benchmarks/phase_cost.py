"""What one annotated phase costs in Python, against an empty loop taken in turns in the same run."""

import argparse
import os
import statistics
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from benchmarks.common import Report, run, scratch
from benchmarks.heartbeat_cost import CALLS, ROUNDS, time_calls, time_empty
from castmates.workloads import phase_file, phases
from castmates.workloads.phase_file import VARIABLE, create
from castmates.workloads.phases import mark, phase

WAYS = ("empty loop", "nobody listens", "a phase", "a mark", "a phase and one counter")


def main() -> None:
    """Measure and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    report = Report("What a phase costs", "phase_cost")
    with scratch(in_memory=True) as folder:
        rounds = [measured(folder, number) for number in range(ROUNDS)]
    medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
    ratios = [statistics.median(one[place] / one[0] for one in rounds) for place in range(len(WAYS))]
    report.text(f"ns per call, median of {ROUNDS} rounds of {CALLS} calls; ratio to the empty loop within a round.")
    rows = [[way, f"{ns:.0f}", f"{ratio:.0f}"] for way, ns, ratio in zip(WAYS, medians, ratios, strict=True)]
    report.table(["with phase(…): pass", "ns", "ratio"], rows)
    report.print()


def measured(folder: Path, number: int) -> list[float]:
    """One round of all ways, in ns per call."""
    return [
        time_empty(),
        told(None, annotated),
        told(file(folder, f"{number}.plain", []), annotated),
        told(file(folder, f"{number}.mark", []), marked),
        told(file(folder, f"{number}.counted", ["page-faults"]), annotated),
    ]


def file(folder: Path, name: str, counters: list[str]) -> Path:
    """A phases file as a block makes it."""
    create(folder / name, counters)
    return folder / name


def told(listener: Path | None, calls: Callable[[], None]) -> float:
    """The ns of a call with, or without, somebody who listens."""
    os.environ[VARIABLE] = "" if listener is None else str(listener)
    phases.reopen()
    for _ in repeat(None, 1000):
        calls()
    found = time_calls(calls)
    if listener is not None:
        assert phase_file.Reader(listener).head > CALLS
        listener.unlink()
    return found


def annotated() -> None:
    """One phase."""
    with phase("forward", step=1):
        pass


def marked() -> None:
    """One mark, which ends the one before."""
    mark("forward", 1)


if __name__ == "__main__":
    run(main)
