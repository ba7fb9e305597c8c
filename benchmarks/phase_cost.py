"""What one annotated phase costs in Python, against an empty loop taken in turns in the same run."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from benchmarks.call_costs import CALLS, EMPTY, LAUNCHES, describe, in_turns, launched, time_calls, time_empty
from benchmarks.common import Report, run, scratch
from castmates.workloads import phase_file, phases
from castmates.workloads.phase_file import VARIABLE, create
from castmates.workloads.phases import mark, phase


def main() -> None:
    """Measure and print the table; or be one of the processes in which phases are timed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=int, metavar="SEED", help="time the phases in this process, and print JSON")
    seed = parser.parse_args().work
    if seed is not None:
        with scratch(in_memory=True) as folder:
            print(json.dumps(in_turns(ways(folder), seed)))
        return
    report = Report("What a phase costs", "phase_cost")
    command = [sys.executable, "-m", "benchmarks.phase_cost", "--work"]
    describe(report, {"Python": [launched([*command, str(number + 1)], {}) for number in range(LAUNCHES)]})
    report.print()


def ways(folder: Path) -> dict[str, Callable[[], float]]:
    """What is timed, `with phase(…): pass` and `mark(…)`."""
    return {
        EMPTY: time_empty,
        "nobody listens": lambda: listened(None, annotated),
        "a phase": lambda: listened(file(folder, "plain", []), annotated),
        "a mark": lambda: listened(file(folder, "mark", []), marked),
        "a phase and one counter": lambda: listened(file(folder, "counted", ["page-faults"]), annotated),
    }


def file(folder: Path, name: str, counters: list[str]) -> Path:
    """A phases file as a block makes it."""
    create(folder / name, counters)
    return folder / name


def listened(listener: Path | None, calls: Callable[[], None]) -> float:
    """The ns of a call that is recorded, or not."""
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
