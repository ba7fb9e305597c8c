"""What one annotation costs, in Python and in C, against an empty loop taken in turns in the same run."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

from benchmarks import verdicts
from benchmarks.call_costs import CALLS, EMPTY, LAUNCHES, Costs, describe, in_turns, launched, time_calls, time_empty
from benchmarks.common import Report, compiled, run, scratch
from castmates import shipped
from castmates.workloads import phase_file, phases
from castmates.workloads.phase_file import VARIABLE, create
from castmates.workloads.phases import end, instant, mark, phase, start

SUMMED, KEPT = "a phase", "a phase, ranges kept"


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
    launches: dict[str, list[Costs]] = {"Python": [], "C": []}
    with scratch(in_memory=True) as folder:
        program = compiled(Path(__file__).with_suffix(".c"), folder, f"-I{shipped.include()}", "-pthread")
        for number in range(LAUNCHES):
            launches["Python"].append(launched([*command, str(number + 1)], {}))
            launches["C"].append(in_c(program, folder / str(number), number + 1))
    describe(report, launches)
    for language, found in launches.items():
        ratios = [one[KEPT] / one[SUMMED] for one in found]
        report.found(
            verdicts.ratio(f"{language}: a phase whose range is kept, of one that is summed", ratios, "launches")
        )
    report.print()


def in_c(program: Path, folder: Path, seed: int) -> Costs:
    """The costs of one launch: of two processes, one right after the other, the second one with ranges kept."""
    folder.mkdir()
    summed, kept = file(folder, "summed", []), file(folder, "kept", [], ranges=True)
    first = launched([str(program), str(seed)], {VARIABLE: str(summed)})
    second = launched([str(program), str(seed)], {VARIABLE: str(kept)})
    return dict(first) | {KEPT: second[SUMMED]}


def ways(folder: Path) -> dict[str, Callable[[], float]]:
    """What is timed, `with phase(…): pass` and `mark(…)`."""
    return {
        EMPTY: time_empty,
        "nobody listens": lambda: listened(None, annotated),
        SUMMED: lambda: listened(file(folder, "plain", []), annotated),
        "a mark": lambda: listened(file(folder, "mark", []), marked),
        "a phase and one counter": lambda: listened(file(folder, "counted", ["page-faults"]), annotated),
        KEPT: lambda: listened(file(folder, "kept", [], ranges=True), annotated),
        "a phase with a payload, kept": lambda: listened(file(folder, "payload", [], ranges=True), with_payload),
        "a range by start and end": lambda: listened(file(folder, "range", [], ranges=True), ranged),
        "an instant": lambda: listened(file(folder, "instant", [], ranges=True), lambda: instant("seen")),
    }


def file(folder: Path, name: str, counters: list[str], *, ranges: bool = False) -> Path:
    """A phases file as a launch makes it."""
    create(folder / name, counters, ranges=ranges)
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


def with_payload() -> None:
    """One phase with a text."""
    with phase("forward", step=1, payload="shape=8x128"):
        pass


def ranged() -> None:
    """One range."""
    end(start("load", 1))


if __name__ == "__main__":
    run(main)
