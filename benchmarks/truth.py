"""Are the losses that we print true? Losses that are known, because they are injected, beside those that are measured.

Neighbours that sleep, spin, compute and stream say how much each costs the lead while it runs. The lead pays by extra
work before each heartbeat, or a third process stops it for that share of the time. All is measured by the command of a
sweep and estimated by the functions that write the tables, in studies of a few launches each. With --usual the same
losses are measured by fresh processes too, in turns with launches, and both ways are compared.
"""

import argparse
import math
import os
import random
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks import launches, usual, verdicts
from benchmarks.common import ROOT, Report, TimeBox, arguments_of, compiled, run, scratch
from benchmarks.precision import Floats, Mean, equivalence, mean_of, minus, points
from benchmarks.truth_job import PAGE
from benchmarks.verdicts import Aim
from castmates.errors import CastmatesError
from castmates.study.spec import Cohort, Plan
from castmates.trials.known_losses import asking, losses, name, study_file
from castmates.workloads.native import build

LEAD = "known-lead"
LOSSES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)  # as a share of the rate
KINDS = ("sleeper", "spin", "compute", "stream")
NATIVE = {"compute": "compute", "tree": "tree --bytes 32M", "chase": "chase --bytes 8M --huge"}
JOBS = {  # the options of the catalogue
    "mobilenetv2-infer": {"model": "mobilenetv2", "size": "small", "mode": "infer", "data": "{inputs}/*.tfrecord"},
    "dlrm-train": {"model": "dlrm", "size": "small", "mode": "train", "data": "{inputs}/*.tsv"},
}
WAYS: Mapping[str, Mapping[str, float]] = {
    "as chosen": {"window": 0.3},
    "of 0.5 s": {"slice": 0.5, "window": 0.5},
    "of 8 s": {"slice": 8.0, "window": 8.0},
}
PAYS = {"work": "extra work before each heartbeat", "stops": "being stopped by a third process"}
# An idle CPU that sleeps takes longer to go on than the stopper counts: some 30 µs a stop on a virtual machine.
AWAKE = {"prepare": {"cpu_dma_latency": 0}}
PER_CPU = (
    "*For each second of CPU*: work over the time in which the lead ran on its CPU (`loss_per_cpu_pct`). What is off "
    "in the rates and not in these is time that other programs, interrupts or the hypervisor had of the lead's CPU in "
    "some scenes more than in others."
)
FRESH = usual.Windows((usual.Choice(warm_up=0.5, length=1.0),), steps=2, longest=10.0)
ALIKE = 1.0  # points within which two ways agree
BIAS, COVERAGE = Aim(least=-0.2, most=0.2), Aim(least=93.0, most=97.0)  # points, per cent


def main() -> None:
    """Measure, and print what is known beside what was found."""
    given = _options()
    also = ", and by fresh processes" * given.usual
    report = Report(f"Known losses: {given.lead} beside {given.kind}, by {given.pay}{also}", "truth")
    with scratch(in_memory=True) as folder, shared_page(folder, given.pay == "stops") as variables:
        plan = _plan(given, folder, variables)
        measured, cycles = [], []
        for number in TimeBox(given.minutes).portions():
            measured.append(launches.measure(plan, number + 1, folder))
            if given.usual:
                cycles.append(_usual_cycle(plan.launches[0].cohort, random.Random(f"{given.seed}/{number}")))
            if number + 1 == given.most:
                break
        launches.keep_raw(measured)
        tell(report, given, plan, measured)
        if given.usual:
            _compare(report, plan, given.losses, measured, np.array(cycles))
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=20)
    parser.add_argument("--lead", choices=[*NATIVE, *JOBS], default="compute")
    parser.add_argument("--kind", choices=KINDS, default="sleeper", help="the neighbour")
    parser.add_argument("--pay", choices=PAYS, default="work", help="how the lead pays")
    parser.add_argument("--losses", nargs="+", type=_share, default=LOSSES, help="per cent of the rate; 0 first")
    parser.add_argument("--way", choices=WAYS, default="as chosen", help="how long slices are")
    parser.add_argument("--study", type=int, default=4, help="launches of a study")
    parser.add_argument("--most", type=int, default=10_000, help="launches, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="measure the antagonists alone too, as large studies do")
    parser.add_argument("--usual", action="store_true", help="measure these losses by fresh processes as well")
    given = parser.parse_args()
    if given.losses[0] != 0:
        parser.error("--losses: the first has to be 0, with which the others are compared.")
    return given


def _share(per_cent: str) -> float:
    return float(per_cent) / 100


@contextmanager
def shared_page(folder: Path, stops: bool) -> Iterator[dict[str, str]]:
    """The page that lead and neighbours share, and who stops the lead, if that is how it pays."""
    page = folder / "tax"
    page.write_bytes(PAGE.pack(0, 0.0, 0, 0, stops))
    variables = {"CASTMATES_TAX": str(page)}
    if not stops:
        yield variables
        return
    program = compiled(ROOT / "benchmarks" / "truth_stops.c", folder, *_with())
    with subprocess.Popen([program], env=os.environ | variables) as stopper:
        try:
            yield variables
        finally:
            stopper.send_signal(signal.SIGTERM)


def _with(*roles: str) -> tuple[str, ...]:
    return (f"-I{build.SOURCES}", "-include", str(build.SOURCES / "tax.h"), *(f"-DTAX_{role}" for role in roles))


def _plan(given: argparse.Namespace, folder: Path, variables: Mapping[str, str]) -> Plan:
    """One launch of the lead beside a neighbour of each loss."""
    own = folder / "study"
    own.mkdir()
    command = [] if given.kind == "sleeper" else _neighbour(given.kind, folder)
    neighbours = {name(given.kind, loss): _asking(loss, command, variables) for loss in given.losses}
    keys: dict[str, object] = {"budget": {"rounds": given.rounds, "antagonists_alone": given.alone, **WAYS[given.way]}}
    if given.pay == "stops":
        keys["machine"] = AWAKE
    workloads = {LEAD: _lead(given.lead, folder, variables), **neighbours}
    file = study_file(own, LEAD, workloads, keys)
    return launches.cohort_plan(launches.study_of(file, given.seed), LEAD, [*neighbours], own)


def _lead(lead: str, folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    if lead in JOBS:
        wrapped = f"python -P {ROOT / 'benchmarks' / 'truth_job.py'} castmates.workloads.tfmodels"
        return {"like": lead, "command": wrapped, "options": JOBS[lead], "variables": dict(variables)}
    program, *options = NATIVE[lead].split()
    made = compiled(build.SOURCES / f"{program}.c", _folder(folder, "lead"), *_with("LEAD"))
    return _workload([str(made), *options], variables)


def _neighbour(kind: str, folder: Path) -> list[str]:
    program = compiled(build.SOURCES / f"{kind}.c", _folder(folder, "neighbours"), *_with("NEIGHBOUR"))
    return [str(program), *(["--bytes", "256M"] if kind == "stream" else [])]


def _asking(loss: float, command: Sequence[str], variables: Mapping[str, str]) -> dict[str, Any]:
    if not command:
        return asking(loss) | {"variables": dict(variables)}
    return _workload(command, {**variables, "CASTMATES_TAX_LOSS": repr(loss)})


def _workload(command: Sequence[str], variables: Mapping[str, str]) -> dict[str, Any]:
    return {
        "command": [*command],
        "progress": "heartbeat",
        "environment": "native",
        "memory": "0.3 GB",
        "variables": dict(variables),
    }


def _folder(folder: Path, own: str) -> Path:
    made = folder / own
    made.mkdir()
    return made


@dataclass(frozen=True)
class Found:
    """What all launches, and short studies of them, say of one known loss."""

    known: float  # per cent
    bias: Mean  # points
    per_cpu: Mean  # the same of the work for each second of CPU: what others took of the lead's CPU is not in it
    covered: tuple[bool, ...]  # by study, of those that have an interval


def found(
    plan: Plan, shares: Sequence[float], measured: Sequence[launches.Measured], size: int, absolute: bool
) -> list[Found]:
    """By known loss. Where the neighbour takes something of its own (not `absolute`), its loss at 0 is taken away."""
    table, _ = launches.losses(plan, measured)
    per_cpu, _ = launches.losses(plan, [replace(one, windows=_per_cpu(one.windows)) for one in measured])
    if len(table) < verdicts.FEWEST:
        raise CastmatesError(
            f"only {len(table)} of {len(measured)} launches have windows of every mix: give more --minutes, or a "
            "machine that does nothing else."
        )
    parts = [measured[begin : begin + size] for begin in range(0, len(measured) - size + 1, size)]
    studies = [
        losses(
            launches.only(plan, *(one.launch for one in part)),
            pd.concat([one.windows for one in part], ignore_index=True),
        )
        for part in parts
    ]
    result = []
    for column, (mix, loss) in enumerate(zip(plan.mixes, shares, strict=True)):
        means = [points(mean_of(of[:, column] - (0 if absolute else of[:, 0]))) for of in (table, per_cpu)]
        bias, of_cpu = (replace(mean, value=mean.value - 100 * loss) for mean in means)
        ends = [(float(one["loss_low"][mix.name]), float(one["loss_high"][mix.name])) for one in studies]
        covered = tuple(low <= 100 * loss <= high for low, high in ends if math.isfinite(high - low))
        result.append(Found(100 * loss, bias, of_cpu, covered))
    return result


def _per_cpu(windows: pd.DataFrame) -> pd.DataFrame:
    """With the rate for each second of the lead's CPU, as in `loss_per_cpu_pct`."""
    return windows.assign(rate=windows["rate"] * windows["read_s"] / windows["cpu_s"])


def _usual_cycle(cohort: Cohort, order: random.Random) -> list[float]:
    """The loss beside each neighbour, as log ratio, from a fresh run of each and one of the lead alone."""
    mixes = [None, *cohort.mixes]
    shuffled = order.sample(range(len(mixes)), len(mixes))
    logs = {place: math.log(usual.measure(cohort, mixes[place], FRESH).rates[0]) for place in shuffled}
    return [logs[0] - logs[place] for place in range(1, len(mixes))]


def _compare(
    report: Report, plan: Plan, shares: Sequence[float], measured: Sequence[launches.Measured], cycles: Floats
) -> None:
    """Whether fresh processes show the same losses: two one-sided tests of the difference."""
    ours, _ = launches.losses(plan, measured)
    if len(cycles) < verdicts.FEWEST:
        raise CastmatesError(f"only {len(cycles)} cycles of fresh processes: give more --minutes.")
    rows, said = [], []
    for column, loss in enumerate(shares):
        both = points(mean_of(ours[:, column])), points(mean_of(cycles[:, column]))
        test = equivalence(minus(both[1], both[0]), ALIKE)
        said.append(test.verdict)
        found = [f"{one.value - 100 * loss:+.2f} ± {one.half_width:.2f}" for one in both]
        rows.append([f"{100 * loss:g} %", *found, f"{test.low:+.2f} to {test.high:+.2f}", test.verdict])
    counts = ", ".join(f"{said.count(word)} {word}" for word in dict.fromkeys(said))
    report.text(
        f"The same losses by the usual way: {len(cycles)} cycles, each of a fresh run alone and one beside each "
        f"neighbour, in random order, in turns with the {len(measured)} launches. Within ±{ALIKE:g} point (two "
        f"one-sided tests at 5 %): {counts}."
    )
    header = ["known loss", "launches less known, points", "fresh processes less known", "fresh less launches, 90 %"]
    report.table([*header, f"within ±{ALIKE:g} point"], rows)


def tell(report: Report, given: argparse.Namespace, plan: Plan, measured: Sequence[launches.Measured]) -> None:
    """The table and the key figures."""
    absolute = given.kind == "sleeper"
    results = found(plan, given.losses, measured, given.study, absolute)
    turns = ", in turns with fresh processes" * given.usual
    where = f"{given.lead} beside {given.kind}, {given.pay}, {given.way}{turns}"
    report.text(
        f"{len(measured)} launches of {given.lead} beside {given.kind} that costs a known share of its rate, which the "
        f"lead pays by {PAYS[given.pay]}; slices {given.way}. Studies: {len(measured) // given.study}, each of "
        f"{given.study} launches, none in two of them. "
        + ("" if absolute else f"What {given.kind} takes by itself is the loss at 0, which is taken away.")
    )
    rows = []
    for one in results:
        kept = f"{sum(one.covered)} of {len(one.covered)}" if absolute else "–"
        less = [f"{mean.value:+.2f} ± {mean.half_width:.2f}" for mean in (one.bias, one.per_cpu)]
        rows.append([f"{one.known:g} %", *less, kept])
        if absolute or one.known:
            report.found(verdicts.of_mean(f"{where}: bias at {one.known:g} %", one.bias, "points", "launches", BIAS))
    header = ["known loss", "found less known, points", "the same for each second of CPU"]
    report.table([*header, "studies whose interval has it"], rows)
    report.text(PER_CPU)
    report.items(launches.doubts(measured))
    if absolute and any(one.covered for one in results):
        report.found(_coverage(where, [one.covered for one in results]))


def _coverage(where: str, covered: Sequence[Sequence[bool]]) -> verdicts.Finding:
    """How many of the intervals hold the truth: Wilson's interval, of as many as are worth that number if independent.

    Those of one study are not: they share its scenes alone.
    """
    every = np.concatenate(covered)
    share, studies = float(every.mean()), len(every)
    worth = float(max(map(len, covered)))  # as if those of a study were one
    if 0 < share < 1 and worth > 1 and len({len(one) for one in covered}) == 1:
        each = np.array(covered, dtype=float).mean(axis=0)
        worth = studies / max(1.0, float(each.var(ddof=1)) * len(covered) / (share * (1 - share)))
    ends = _wilson(share, worth)
    what, value = f"{where}: intervals of short studies that have the known loss", 100 * share
    low, high = 100 * ends[0], 100 * ends[1]
    return verdicts.Finding(
        what=what,
        value=value,
        unit="%",
        low=low,
        high=high,
        count=studies,
        of="intervals",
        aim=COVERAGE,
    )


def _wilson(share: float, count: float) -> tuple[float, float]:
    z = float(stats.norm.ppf(0.975))
    middle, half = share + z**2 / (2 * count), z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return (middle - half) / (1 + z**2 / count), (middle + half) / (1 + z**2 / count)


if __name__ == "__main__":
    run(main)
