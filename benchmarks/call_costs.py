"""What a call costs against an empty loop, timed in turns of random order in several processes: the sample."""

import json
import os
import random
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from time import perf_counter_ns

from benchmarks import verdicts
from benchmarks.common import Report
from benchmarks.machine import ROOT
from castmates.errors import CastmatesError

ROUNDS = 12
CALLS = 10_000
LAUNCHES = 8
EMPTY = "empty loop"

Costs = Mapping[str, float]  # way: ns a call, the median of a launch's rounds


def launched(command: Sequence[str], variables: Mapping[str, str]) -> Costs:
    """Run a process that prints, as JSON, the ns of a call by way and round; return the medians."""
    done = subprocess.run(
        command, env=os.environ | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode != 0:
        raise CastmatesError(
            f"'{' '.join(command)}' failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    rounds = json.loads(done.stdout)
    return {way: statistics.median(one[way] for one in rounds) for way in rounds[0]}


def in_turns(ways: Mapping[str, Callable[[], float]], seed: int) -> list[dict[str, float]]:
    """Time every way once a round, in an order that is drawn each time."""
    chance = random.Random(seed)
    found = [{way: ways[way]() for way in chance.sample(list(ways), len(ways))} for _ in range(ROUNDS)]
    return [{way: one[way] for way in ways} for one in found]


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


def describe(report: Report, launches: Mapping[str, Sequence[Costs]]) -> None:
    """A row of each kind of call, and its cost as a multiple of the empty loop, over launches."""
    report.text(
        "ns a call: median of the launches, in each of them the median of the rounds, in which all ways took turns in "
        "random order. The ratio to the empty loop is taken within a launch."
    )
    rows = []
    for language, found in launches.items():
        for way in found[0]:
            ns = [one[way] for one in found]
            rows.append([language, way, f"{statistics.median(ns):.2f}", f"{min(ns):.2f} to {max(ns):.2f}"])
            if way != EMPTY:
                ratios = [one[way] / one[EMPTY] for one in found]
                report.found(verdicts.ratio(f"{language}: {way}, of an empty loop", ratios, "launches"))
    report.table(["language", "way", "ns", "launches from, to"], rows)
