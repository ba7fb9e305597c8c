"""What one heartbeat costs, in C and in Python, against an empty loop taken in turns in the same run."""

import argparse
import json
import sys
from itertools import repeat
from pathlib import Path

from benchmarks.call_costs import EMPTY, LAUNCHES, Costs, describe, in_turns, launched, time_calls, time_empty
from benchmarks.common import Report, compiled, run, scratch
from castmates.workloads.heartbeat import CAPACITY, VARIABLE, Writer, create


def main() -> None:
    """Measure and print the table; or be one of the processes in which Python's beats are timed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=int, metavar="SEED", help="time the beats in this process, and print JSON")
    seed = parser.parse_args().work
    if seed is not None:
        print(json.dumps(in_python(seed)))
        return
    report = Report("What a heartbeat costs", "heartbeat_cost")
    with scratch(in_memory=True) as folder:
        program = compiled(Path(__file__).with_suffix(".c"), folder)
        launches: dict[str, list[Costs]] = {"C": [], "Python": []}
        for number in range(LAUNCHES):
            commands = {
                "C": [str(program), str(number + 1)],
                "Python": [sys.executable, "-m", "benchmarks.heartbeat_cost", "--work", str(number + 1)],
            }
            for language, command in commands.items():
                beats = folder / f"{language}.{number}.beats"
                create(beats)
                launches[language].append(launched(command, {VARIABLE: str(beats)}))
    describe(report, launches)
    report.print()


def in_python(seed: int) -> list[dict[str, float]]:
    """Time the same three loops in this interpreter."""
    unheard, heard = Writer(None), Writer.from_environment()
    for _ in repeat(None, CAPACITY):  # the first time round, the kernel has to find memory for the file
        heard.beat()
    ways = {
        EMPTY: time_empty,
        "no runner": lambda: time_calls(unheard.beat),
        "beat": lambda: time_calls(heard.beat),
    }
    return in_turns(ways, seed)


if __name__ == "__main__":
    run(main)
