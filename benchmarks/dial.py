"""How well the dials hold: the rate of `bandwidth` and `capacity` against the wanted one, in shares of the highest."""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks import verdicts
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from benchmarks.kernels import last_cpu, programs, rate
from benchmarks.verdicts import Aim, Finding
from castmates.machine.lock import machine_lock

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # of the highest rate of the same minute
SINGLE = 0.02  # of the wanted rate
AIM = Aim(most=100 * SINGLE)  # per cent; for the worst share of a round
MINUTE = 60.0  # seconds, in which the highest rate counts
COMMANDS = {
    "bandwidth, reads": "bandwidth --bytes 256M",
    "bandwidth, a third writes": "bandwidth --bytes 256M --writes 33%",
    "capacity, 8 MiB": "capacity --bytes 8M",
    "chase, 1 MiB": "chase --bytes 1M",
}


@dataclass
class Dial:
    """The measurements of one dial."""

    name: str
    command: list[str]
    highest: list[float] = field(default_factory=list)  # units a second
    held: dict[float, list[float]] = field(default_factory=lambda: {share: [] for share in SHARES})  # held / wanted
    dropped: int = 0  # rounds that took longer than the minute


def main() -> None:
    """Measure and print the table."""
    options = _options()
    chance = random.Random(options.seed)
    dials = [Dial(name, command.split()) for name, command in COMMANDS.items()]
    place, cpu = programs(), last_cpu()
    with machine_lock("dial (benchmark)"), scratch(in_memory=True) as folder:
        measure = partial(rate, place, seconds=options.seconds, cpu=cpu, folder=folder)
        report = Report("What a dial holds", "dial")
        for number in TimeBox(options.minutes).portions():
            for dial in chance.sample(dials, len(dials)):
                say(f"round {number + 1}: {dial.name}")
                _round(dial, chance, measure)
    describe(report, options.seconds, dials)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="for which one rate is held")
    return parser.parse_args()


def _round(dial: Dial, chance: random.Random, measure: Callable[[Sequence[str]], float]) -> None:
    """Measure the highest rate, then hold all shares of it in random order, within a minute."""
    begin = time.monotonic()
    top = measure(dial.command)
    held = {}
    for share in chance.sample(SHARES, len(SHARES)):
        wanted = f"{share * top:.0f}"
        held[share] = measure([*dial.command, "--rate", wanted]) / float(wanted)
    took = time.monotonic() - begin
    if took > MINUTE:
        say(f"{dial.name} took {took:.0f} s: more than the minute in which the highest rate counts, so it is dropped")
        dial.dropped += 1
        return
    dial.highest.append(top)
    for share, ratio in held.items():
        dial.held[share].append(ratio)


def describe(report: Report, seconds: float, dials: Sequence[Dial]) -> None:
    """The table, and the result of each dial."""
    report.text(
        f"Held rate / wanted rate over {seconds:g} s: the median of the rounds; in brackets lowest and highest. "
        "In each round the highest rate of a dial is measured first, and shares of it are held in random order "
        f"within the same minute; rounds that took longer are dropped: {_dropped(dials)}. "
        "An interruption of up to 20 ms is made up for, a longer one is not."
    )
    header = ["dial", "rounds", "highest, units/s", *(percent(share, 0) for share in SHARES)]
    rows = []
    for dial in dials:
        highest = f"{statistics.median(dial.highest):.4g}" if dial.highest else "–"
        rows.append([dial.name, str(len(dial.highest)), highest, *map(_cell, dial.held.values())])
    report.table(header, rows)
    if over := single_misses(dials):
        report.text(f"Single holds that were off by more than {percent(SINGLE, 0)}: {over}.")
    report.found(*findings(dials))


def _dropped(dials: Sequence[Dial]) -> str:
    dropped = [f"{dial.dropped} of {dial.name}" for dial in dials if dial.dropped]
    return ", ".join(dropped) or "none here"


def findings(dials: Sequence[Dial]) -> Iterator[Finding]:
    """Each round's worst hold of each dial."""
    for dial in dials:
        worst = [100 * max(abs(ratio - 1) for ratio in ratios) for ratios in zip(*dial.held.values(), strict=True)]
        if worst:
            yield verdicts.mean(f"{dial.name}: the worst of a round's shares is off by", worst, "%", "rounds", AIM)


def single_misses(dials: Sequence[Dial]) -> str:
    """Which shares were not held in some round."""
    errors = {
        f"{dial.name} at {percent(share, 0)}": [abs(ratio - 1) for ratio in ratios]
        for dial in dials
        for share, ratios in dial.held.items()
    }
    over, whole = (sum(error > limit for ones in errors.values() for error in ones) for limit in (SINGLE, -1))
    at = [f"{what} ({percent(max(ones))} at worst)" for what, ones in errors.items() if max(ones, default=0) > SINGLE]
    return f"{over} of {whole}, at {', '.join(at)}" if over else ""


def _cell(ratios: list[float]) -> str:
    if not ratios:
        return "–"
    return f"{statistics.median(ratios):.4f} ({min(ratios):.3f} to {max(ratios):.3f})"


if __name__ == "__main__":
    run(main)
