"""What the dials hold: the rate of `bandwidth` and `capacity` against the one asked for, in shares of the highest."""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from benchmarks.kernels import last_cpu, others, programs, rate
from castmates.machine.lock import machine_lock

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # of the highest rate of the same minute
AIM = 0.02  # of the wanted rate
COMMANDS = {
    "bandwidth, reads": "bandwidth --bytes 256M",
    "bandwidth, a third writes": "bandwidth --bytes 256M --writes 33",
    "capacity, 8 MiB": "capacity --bytes 8M",
    "chase, 1 MiB": "chase --bytes 1M",
}


@dataclass
class Dial:
    """What was measured of one dial."""

    name: str
    command: list[str]
    highest: list[float] = field(default_factory=list)  # units a second
    held: dict[float, list[float]] = field(default_factory=lambda: {share: [] for share in SHARES})  # held / wanted


def main() -> None:
    """Measure and print the table."""
    options = _options()
    chance = random.Random(options.seed)
    dials = [Dial(name, command.split()) for name, command in COMMANDS.items()]
    place, cpu = programs(), last_cpu()
    with machine_lock("dial (benchmark)"), scratch(in_memory=True) as folder:
        measure = partial(rate, place, seconds=options.seconds, cpu=cpu, folder=folder)
        report = Report("What a dial holds", "dial")
        report.text(others())
        for number in TimeBox(options.minutes).portions():
            for dial in chance.sample(dials, len(dials)):
                say(f"round {number + 1}: {dial.name}")
                _round(dial, chance, measure)
    _tell(report, options.seconds, dials)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="for which one rate is held")
    return parser.parse_args()


def _round(dial: Dial, chance: random.Random, measure: Callable[[Sequence[str]], float]) -> None:
    """Measure the highest rate, then hold all shares of it in random order, within a minute."""
    begin = time.monotonic()
    top = measure(dial.command)
    dial.highest.append(top)
    for share in chance.sample(SHARES, len(SHARES)):
        wanted = f"{share * top:.0f}"
        dial.held[share].append(measure([*dial.command, "--rate", wanted]) / float(wanted))
    took = time.monotonic() - begin
    if took > 60:
        say(f"{dial.name} took {took:.0f} s: more than the minute in which the highest rate counts")


def _tell(report: Report, seconds: float, dials: Sequence[Dial]) -> None:
    rounds = len(dials[0].highest)
    report.text(
        f"Held rate / wanted rate over {seconds:g} s: the median of {rounds} rounds; in brackets lowest and highest. "
        "In each round the highest rate of a dial is measured first, and shares of it are held in random order "
        "within the same minute. An interruption of up to 20 ms is made up for, a longer one is not."
    )
    header = ["dial", "highest, units/s", *(percent(share, 0) for share in SHARES)]
    rows = [[dial.name, f"{statistics.median(dial.highest):.4g}", *map(_cell, dial.held.values())] for dial in dials]
    report.table(header, rows)
    errors = {
        f"{dial.name} at {percent(share, 0)}": abs(statistics.median(ratios) - 1)
        for dial in dials
        for share, ratios in dial.held.items()
    }
    missed = [f"{what} ({percent(error)})" for what, error in errors.items() if error > AIM]
    verdict = (
        f"missed at {', '.join(missed)}" if missed else f"met everywhere (largest: {percent(max(errors.values()), 2)})"
    )
    report.text(f"**Verdict.** The aim, a median within {percent(AIM, 0)} of the wanted rate, is {verdict}.")


def _cell(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.4f} ({min(ratios):.3f} to {max(ratios):.3f})"


if __name__ == "__main__":
    run(main)
