"""Pressure: how much each antagonist hurts each lead here, our kernels beside stress-ng's stressors in the same launch.

Pairs of windows in random order, the antagonist frozen and running; one after the other within seconds. An antagonist
has one CPU and stays on it: a stressor that takes the lead's CPU itself is shown, but not compared.
"""

import argparse
import random
import shutil
import subprocess
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import launches, verdicts
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from benchmarks.perturbation import cohort_on_stage
from benchmarks.precision import Floats, Mean, mean_of, points
from benchmarks.pressure_figure import Bar, draw
from benchmarks.verdicts import Aim, Finding
from castmates.runner.rounds.stage import Stage
from castmates.study.model import Study, Workload
from castmates.study.spec import Cohort

AROUND = 3.0  # minutes for the trials, launches and duels
DUEL_ROUNDS = 4  # in a launch
LEAST_SHARE = 0.2  # of a window, in which the lead must have had its CPU
AS_HARD = Aim(least=1.0)  # our strongest is to take as much as theirs
PATIENCE = 30  # seconds for a stressor that is tried for one

# Kernels on their own CPU; dials at a given rate are left out, because they take only the given amount.
OURS = (
    *("stream", "stream-copy", "stream-read", "stream-write", "stream-nontemporal", "chase", "chase-parallel"),
    *("gather", "gups", "stencil", "spmv", "hashjoin", "tree", "search", "integer", "avx", "icache", "tlb"),
    *("sharing-split", "pagefault", "fileio", "compute"),
)
# One worker of each; without its option, `cache` would move over all CPUs.
STRESSORS: Mapping[str, str] = {
    "cpu": "--cpu 1",
    "matrix": "--matrix 1",
    "vecmath": "--vecmath 1",
    "branch": "--branch 1",
    "icache": "--icache 1",
    "l1cache": "--l1cache 1",
    "cache": "--cache 1 --cache-no-affinity",
    "stream": "--stream 1",
    "memcpy": "--memcpy 1",
    "memrate": "--memrate 1 --memrate-bytes 256m",
    "memthrash": "--memthrash 1",
    "prefetch": "--prefetch 1",
    "vm": "--vm 1 --vm-bytes 256m",
    "mcontend": "--mcontend 1",
    "lockbus": "--lockbus 1",
    "tlb-shootdown": "--tlb-shootdown 1",
    "fault": "--fault 1",
    "malloc": "--malloc 1 --malloc-bytes 256m",
    "tsearch": "--tsearch 1",
    "hdd": "--hdd 1 --hdd-bytes 64m",
}


@dataclass
class Losses:
    """What one lead lost beside each antagonist, by round."""

    lead: str
    cohort: Cohort
    rows: list[list[float]] = field(default_factory=list)  # rounds x antagonists, in log units
    elsewhere: set[str] = field(default_factory=set)  # antagonists that were seen on a CPU of the lead
    shares: list[float] = field(default_factory=list)  # of each window, in which the lead had its CPU
    duellists: tuple[str, str] | None = None  # our strongest of these rounds and stress-ng's
    duel: list[list[float]] = field(default_factory=list)  # what these two took in separate launches, in log units

    @property
    def names(self) -> list[str]:
        """The antagonists, as in a row."""
        return [member.workload for member in self.cohort.members[1:]]

    def of(self, column: int) -> Floats:
        """What each round gave for an antagonist, without those in which a window had no rate."""
        values = np.array(self.rows, dtype=float)[:, column]
        return np.asarray(values[np.isfinite(values)])


def main() -> None:
    """Measure both leads in turn, then show the strongest antagonists."""
    options = _options()
    report = Report("Pressure: which antagonist hurts most", "pressure")
    stressors, missing = usable(options.stressors)
    study = _with_stressors(launches.study_of(options.study, options.seed, longest_launch=3600), stressors)
    names = [*options.antagonists, *(_named(stressor) for stressor in stressors)]
    found = []
    with scratch() as folder:
        for lead in options.leads:
            cohort = launches.cohort_plan(study, lead, names, folder).launches[0].cohort
            with cohort_on_stage(cohort, folder) as stage:
                say(f"{lead}: {len(names)} antagonists are ready")
                box = TimeBox((options.minutes - AROUND) / len(options.leads))
                found.append(measure(stage, cohort, box, options))
            if found[-1].duellists is not None:
                both = found[-1].duellists
                pair = launches.cohort_plan(study, lead, both, folder).launches[0].cohort
                found[-1].duel = [duel(pair, both, number, folder, options) for number in range(options.duels)]
    if options.figure is not None:
        draw([(losses.lead, _bars(losses)) for losses in found], options.figure)
    describe(report, found, missing, options)
    report.found(*(finding for losses in found if (finding := duel_of(losses)) is not None))
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=8)
    parser.add_argument("--leads", nargs="+", default=["chase", "stream"], help="each in a separate launch")
    parser.add_argument("--antagonists", nargs="+", default=list(OURS), help="ours, by their names in the catalogue")
    parser.add_argument("--stressors", nargs="*", default=list(STRESSORS), choices=list(STRESSORS), help="stress-ng's")
    parser.add_argument(
        "--study", type=Path, default=Path("config/config.yaml"), help="study that provides the catalogue"
    )
    parser.add_argument("--window", type=float, default=0.25, help="seconds")
    parser.add_argument("--settle", type=float, default=0.08, help="seconds before each window")
    parser.add_argument("--duels", type=int, default=6, help="further launches, of the strongest of both sides alone")
    parser.add_argument("--figure", type=Path, help="where to draw the losses: FIGURE.svg, .pdf, .png and .csv")
    return parser.parse_args()


def usable(stressors: Sequence[str]) -> tuple[list[str], list[str]]:
    """The stressors that run here, each tried for a second, and why the others do not."""
    if stressors and shutil.which("stress-ng") is None:
        return [], ["stress-ng is not installed: apt-get install stress-ng"]
    good, missing = [], []
    for name in stressors:
        words = ["stress-ng", *STRESSORS[name].split(), "--timeout", "1"]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            missing.append(f"`{name}` does not end here (with a time of 1 s, it was ended after {PATIENCE} s)")
            continue
        if done.returncode == 0:
            good.append(name)
        else:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            missing.append(f"`{name}` does not run here (status {done.returncode}: {last})")
    return good, missing


def _named(stressor: str) -> str:
    return f"ng-{stressor}"


def _with_stressors(study: Study, stressors: Sequence[str]) -> Study:
    """The study with a workload for each stressor, which runs for ever as one run."""
    more = {
        _named(name): Workload(
            command=f"stress-ng {STRESSORS[name]} --temp-path {{scratch}}", progress="runs", memory="0.5 GB"
        )
        for name in stressors
    }
    return study.model_copy(update={"workloads": {**study.workloads, **more}})


def measure(stage: Stage, cohort: Cohort, box: TimeBox, options: argparse.Namespace) -> Losses:
    """Rounds over all antagonists while time lasts; the strongest on each side."""
    losses = Losses(cohort.lead.workload, cohort)
    rng = random.Random(f"{options.seed}/{cohort.lead.workload}")
    for _ in box.portions():
        losses.rows.append(_round(stage, losses, losses.names, rng, options))
    losses.duellists = strongest(losses)
    return losses


def duel(cohort: Cohort, both: tuple[str, str], number: int, folder: Path, options: argparse.Namespace) -> list[float]:
    """What the lead loses beside either in a new launch, in log units: the mean of its rounds."""
    losses = Losses(cohort.lead.workload, cohort)
    rng = random.Random(f"{options.seed}/{cohort.lead.workload}/{number}")
    with cohort_on_stage(cohort, folder) as stage:
        say(f"{losses.lead}: {' against '.join(both)}, launch {number + 1} of {options.duels}")
        for _ in range(DUEL_ROUNDS):
            losses.rows.append(_round(stage, losses, both, rng, options))
    known = [row for row in losses.rows if np.isfinite(row).all()]
    return np.mean(known, axis=0).tolist() if known else [np.nan, np.nan]


def _round(
    stage: Stage, losses: Losses, workloads: Sequence[str], rng: random.Random, options: argparse.Namespace
) -> list[float]:
    """What the lead loses beside each of them, in log units, measured in random order."""
    lead, found = losses.cohort.lead, dict.fromkeys(workloads, np.nan)
    members = [member for member in losses.cohort.members[1:] if member.workload in found]
    for one in rng.sample(members, len(members)):
        rates = {}
        for running in rng.sample([False, True], 2):
            stage.switch([lead.name, one.name] if running else [lead.name])
            rates[running] = _rate(stage, losses, options)
            if running and stage.cpus_of_threads(one.name) & set(lead.cpus):
                losses.elsewhere.add(one.workload)
        found[one.workload] = float(np.log(rates[False] / rates[True]))
    return list(found.values())


def _rate(stage: Stage, losses: Losses, options: argparse.Namespace) -> float:
    """Units per second of the lead's CPU time: programs that take its CPU on a shared machine are not antagonists."""
    lead = stage.cast[losses.cohort.lead.name]
    stage.forget_beats()  # before it settles: the last beat before the window shows what was done by then
    stage.sleep_until(time.monotonic_ns() + int(options.settle * 1e9))
    begin, ran = time.monotonic_ns(), _ran_ns(lead.pid)
    stage.sleep_until(begin + int(options.window * 1e9))
    end, ran = time.monotonic_ns(), _ran_ns(lead.pid) - ran
    stage.read_beats()
    losses.shares.append(ran / (end - begin))
    return rate_of(lead.records, begin, end, ran)


def rate_of(records: Sequence[tuple[int, int]], begin: int, end: int, ran: int) -> float:
    """Units done in the window a second of CPU time in it; NaN where there was too little of either."""
    until = [bisect_right(records, edge, key=lambda record: record[0]) for edge in (begin, end)]
    if until[0] == 0 or ran < LEAST_SHARE * (end - begin):
        return np.nan
    units = records[until[1] - 1][1] - records[until[0] - 1][1]
    return units / ran * 1e9 if units > 0 else np.nan


def _ran_ns(pid: int) -> int:
    """CPU time of a process so far, on the clock that the kernel keeps for it (as clock_getcpuclockid names it)."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def _bars(losses: Losses) -> list[Bar]:
    """What the figure shows of a lead."""
    found = []
    for column, name in enumerate(losses.names):
        enough = len(losses.of(column)) >= 2
        loss = points(mean_of(losses.of(column))) if enough else Mean(np.nan, np.nan, 1.0)
        found.append(Bar(name, loss.value, loss.half_width, not name.startswith("ng-"), name in losses.elsewhere))
    return found


def strongest(losses: Losses) -> tuple[str, str] | None:
    """Our strongest and stress-ng's strongest: measured anew afterwards, without the luck of the best."""
    known = sorted(
        (
            (float(losses.of(column).mean()), name)
            for column, name in enumerate(losses.names)
            if _comparable(losses, name)
        ),
        reverse=True,
    )
    sides = [[name for _, name in known if name.startswith("ng-") == theirs] for theirs in (False, True)]
    return (sides[0][0], sides[1][0]) if all(sides) else None


def _comparable(losses: Losses, name: str) -> bool:
    return name not in losses.elsewhere and len(losses.of(losses.names.index(name))) > 0


def duel_of(losses: Losses) -> Finding | None:
    """How long a step takes beside our strongest, of that beside theirs, over launches that did not choose them."""
    table = _known(losses)
    if losses.duellists is None or len(table) == 0:
        return None
    ours, theirs = losses.duellists
    what = f"`{losses.lead}`: a step beside `{ours}`, of one beside `{theirs}`"
    return verdicts.ratio(what, np.exp(table[:, 0] - table[:, 1]), "launches", AS_HARD)


def compared(losses: Losses) -> str:
    """The two that were compared, and the loss beside each."""
    if losses.duellists is None:
        return f"`{losses.lead}`: there is nothing to compare with."
    table = _known(losses)
    taken = [f"{100 * (1 - np.exp(-column.mean())):.1f} %" for column in table.T] if len(table) else ["no rate"] * 2
    return (
        f"`{losses.lead}`, the strongest of both sides in {len(losses.duel)} further launches of these two alone, "
        f"{DUEL_ROUNDS} rounds each: `{losses.duellists[0]}` takes {taken[0]}, `{losses.duellists[1]}` {taken[1]}."
    )


def _known(losses: Losses) -> Floats:
    """The launches of the duel in which both have a rate."""
    table = np.array(losses.duel, dtype=float).reshape(-1, 2)
    return np.asarray(table[np.isfinite(table).all(axis=1)])


def describe(report: Report, found: Sequence[Losses], missing: Sequence[str], options: argparse.Namespace) -> None:
    """The table of all antagonists."""
    rounds = ", ".join(f"{len(losses.rows)} at {losses.lead}" for losses in found)
    shares = ", ".join(percent(float(np.mean(losses.shares))) for losses in found)
    report.text(
        f"Loss of the lead's rate in per cent, with 95 % intervals within this launch; rounds: {rounds}. Windows of "
        f"{options.window:g} s, {options.settle:g} s after each change; a CPU each for lead and antagonist; `ng-` are "
        "stress-ng's stressors, one worker each. Rates are per second of the lead's CPU time, so programs that take "
        f"its CPU are not antagonists: it had it for {shares} of the windows' time."
    )
    bars = [{bar.name: bar for bar in _bars(losses)} for losses in found]
    order = sorted(bars[0], key=lambda name: -max(np.nan_to_num(lead[name].loss, nan=-1e9) for lead in bars))
    rows = [[f"`{name}`", *(_cell(lead[name]) for lead in bars)] for name in order]
    report.table(["antagonist", *(f"loss of `{losses.lead}`" for losses in found)], rows)
    if any(losses.elsewhere for losses in found):
        report.text("† It put threads onto the lead's CPU: it also took CPU time, and is not compared.")
    for problem in missing:
        report.text(f"Left out: {problem}.")
    for losses in found:
        report.text(compared(losses))


def _cell(bar: Bar) -> str:
    if np.isnan(bar.loss):
        return "too few rounds"
    return f"{bar.loss:.1f} ± {bar.half_width:.1f}{' †' if bar.elsewhere else ''}"


if __name__ == "__main__":
    run(main)
