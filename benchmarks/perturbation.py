"""What our looking costs: a lead with all collectors against none, and an antagonist with our looks against none.

Pairs of windows in random order, in several launches. The upper ends of the 95 % intervals are to be below
0.5 % of the rate.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import blocks
from benchmarks.common import Report, TimeBox, arguments_of, beside, percent, run, say, scratch
from benchmarks.precision import Floats, Mean, mean_of, points
from benchmarks.usual import rate_between
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.machine.lock import machine_lock
from castmates.protocols import Held
from castmates.rdt.choose import Wish
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes import starts as casting
from castmates.runner.processes.barrier import await_ready
from castmates.runner.processes.freezer import choose_freezer
from castmates.runner.processes.launch import Running, WorkloadFailed, launch
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Company

AIM = 0.5  # per cent; the upper end of the loss's interval is to be below it
FEWEST_PAIRS, FEWEST_LAUNCHES = 5, 3


@dataclass
class Pairs:
    """Windows of one launch without and with what is tried, in the order in which pairs were measured."""

    what: str
    without: list[float] = field(default_factory=list)  # rates
    with_it: list[float] = field(default_factory=list)
    runner: list[float] = field(default_factory=list)  # share of a window with it in which this process ran

    def measure(self, stage: Stage, one: Running, on: bool, hold: Callable[[], None]) -> None:
        """Measure a window that lasts as long as `hold` takes."""
        stage.forget_beats()
        busy, open_ns = time.process_time(), time.monotonic_ns()
        hold()
        close_ns, busy = time.monotonic_ns(), time.process_time() - busy
        stage.read_beats()
        stage.look_after()
        (self.with_it if on else self.without).append(rate_between(one.records, open_ns, close_ns))
        if on:
            self.runner.append(busy / (close_ns - open_ns) * 1e9)

    @property
    def losses(self) -> Floats:
        """Of each pair in which both rates are known, in log units: noise of the windows does not shift their mean."""
        losses = np.log(self.without) - np.log(self.with_it)
        return np.asarray(losses[np.isfinite(losses)])

    @property
    def runner_share(self) -> float:
        """Of the windows' time."""
        return float(np.mean(self.runner))


def main() -> None:
    """Measure the collectors on each lead and the looks once, each in its share of the time."""
    options = _options()
    report = Report("Perturbation: what our looking costs", "perturbation")
    study = blocks.study_of(options.study, options.seed)
    found: list[Pairs] = []
    minutes = options.minutes / options.launches / (len(options.leads) + 1)
    with scratch() as folder:
        plans = [blocks.company_plan(study, lead, [options.antagonist], folder) for lead in options.leads]
        companies = [plan.blocks[0].company for plan in plans]
        for launched, (number, company) in product(range(options.launches), enumerate(companies)):
            rng = random.Random(f"{options.seed}/{company.lead.workload}/{launched}")
            with on_stage(company, folder) as stage:
                found.append(collectors(stage, company, TimeBox(minutes), rng, options))
                if number == 0:
                    found.append(looks(stage, company, TimeBox(minutes), rng, options))
    _tell(report, found, options)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=2.5)
    parser.add_argument(
        "--leads", nargs="+", default=["chase", "mobilenetv2-infer"], help="each in launches of its own"
    )
    parser.add_argument("--launches", type=int, default=3, help="of each lead")
    parser.add_argument("--antagonist", default="compute", help="the workload on whose CPU the runner may sit")
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="whose catalogue is used")
    parser.add_argument("--window", type=float, default=0.5, help="seconds, for the collectors")
    parser.add_argument("--look-window", type=float, default=2.2, help="seconds, for the looks: one each second")
    parser.add_argument("--settle", type=float, default=0.1, help="seconds before each window")
    return parser.parse_args()


def collectors(stage: Stage, company: Company, box: TimeBox, rng: random.Random, options: argparse.Namespace) -> Pairs:
    """The lead alone, with everything that a block collects and with nothing."""
    lead = stage.cast[company.lead.name]
    say(f"{lead.name}: windows with and without collectors")
    stage.switch([lead.name])
    pairs = Pairs(f"all collectors, at {company.lead.workload}")
    for _ in box.portions():
        for on in rng.sample([False, True], 2):
            with _watching(stage) if on else nullcontext() as hardware:
                stage.sleep_until(time.monotonic_ns() + int(options.settle * 1e9))
                pairs.measure(stage, lead, on, lambda: _collect(hardware, lead.name, options.window))
    return pairs


def looks(stage: Stage, company: Company, box: TimeBox, rng: random.Random, options: argparse.Namespace) -> Pairs:
    """An antagonist alone, with the runner looking after everyone once a second and without."""
    antagonist = stage.cast[company.members[1].name]
    say(f"{antagonist.name}: windows with and without the runner's looks")
    stage.switch([antagonist.name])
    cpus = os.sched_getaffinity(0)
    beside_it = "on its CPU" if cpus & set(antagonist.start.cpus) else "on a CPU of its own"
    pairs = Pairs(f"the runner's looks ({beside_it}), at {company.members[1].workload}")
    for _ in box.portions():
        for on in rng.sample([False, True], 2):
            stage.sleep_until(time.monotonic_ns() + int(options.settle * 1e9))
            until = time.monotonic_ns() + int(options.look_window * 1e9)
            wait = stage.sleep_until if on else _sleep_until
            pairs.measure(stage, antagonist, on, lambda wait=wait, until=until: wait(until))  # type: ignore[misc]
    return pairs


def _collect(hardware: Hardware | None, name: str, seconds: float) -> None:
    """The window with both its edges."""
    if hardware is not None:
        hardware.begin_series([name], 1)
        hardware.open_window([name])
    time.sleep(seconds)
    if hardware is not None:
        hardware.close_window()


def _sleep_until(t_ns: int) -> None:
    time.sleep(max(0, t_ns - time.monotonic_ns()) / 1e9)


@contextmanager
def _watching(stage: Stage) -> Iterator[Hardware]:
    """Everything that a block would collect, attached to all members; gone afterwards."""
    hardware = Hardware.choose(sorted({cpu for one in stage.cast.values() for cpu in one.start.cpus}), Wish(), say)
    everyone = {one.name: Held(one.pid, one.start.cpus) for one in stage.cast.values()}
    hardware.attach(everyone, everyone)
    try:
        yield hardware
    finally:
        hardware.release()


@contextmanager
def on_stage(company: Company, folder: Path) -> Iterator[Stage]:
    """Launch a company's members and hold them frozen, as a block does."""
    everyone = {cpu for member in company.members for cpu in member.cpus}
    names = {member.name for member in company.members}
    with ExitStack() as exits:
        exits.enter_context(machine_lock("perturbation (benchmark)"))
        exits.enter_context(beside(everyone, set(company.lead.cpus)))
        place = exits.enter_context(scratch(in_memory=True))
        warden = Warden.start()
        exits.callback(warden.release)
        freezer = choose_freezer(company.lead.workload)
        exits.callback(freezer.close)
        for group in freezer.groups():
            warden.guard_cgroup(group)

        def adopt(name: str, pid: int) -> None:
            warden.guard_process(pid)
            freezer.adopt(name, pid)

        starts = [one for one in casting.starts(company, folder, cache_folder()) if one.name in names]
        try:
            cast = [launch(start, place, place, adopt) for start in starts]
            await_ready(cast, freezer, lambda: None)
            yield Stage(cast, freezer, Hardware.choose(sorted(everyone), Wish(rate=0), say), lambda: None)
        except WorkloadFailed as failure:
            raise CastmatesError(f"a member of the benchmark failed: {failure}") from None


def _tell(report: Report, found: Sequence[Pairs], options: argparse.Namespace) -> None:
    report.text(
        f"Pairs of windows in random order within a launch, {options.launches} launches of each lead: "
        f"{options.window:g} s for the collectors, which are attached anew for each window that has them and gone in "
        f"the other, and whose edges lie inside the measured time; {options.look_window:g} s for the looks."
    )
    rows = []
    for what in dict.fromkeys(pairs.what for pairs in found):
        launches = [pairs for pairs in found if pairs.what == what]
        everything = np.concatenate([pairs.losses for pairs in launches])
        means = np.array([pairs.losses.mean() for pairs in launches if len(pairs.losses)])
        runner = np.average([pairs.runner_share for pairs in launches], weights=[len(one.runner) for one in launches])
        within = _judged(everything, FEWEST_PAIRS, "pairs")
        rows.append([what, str(len(everything)), *within, *_judged(means, FEWEST_LAUNCHES, "launches")])
        rows[-1].append(percent(float(runner), 3))
    header = ["what", "pairs", "loss of rate, pairs as units", "within these launches", "launches as units"]
    report.table([*header, "over launches", "runner's own CPU time"], rows)
    resolved, over_launches = (sum("below" in row[column] for row in rows) for column in (3, 5))
    report.text(
        f"**Verdict.** Of {len(rows)} losses {resolved} are shown to be below {AIM:g} % within these launches, "
        f"and {over_launches} over launches (upper end of the 95 % interval; a few launches resolve little). `Runner's "
        "own CPU time` is the share of a window with it in which this process ran, wherever that was."
    )


def _judged(losses: Floats, fewest: int, units: str) -> list[str]:
    """An interval and what it says."""
    if len(losses) < fewest:
        return ["", f"fewer than {fewest} {units}"]
    loss = points(mean_of(losses))
    return [f"{loss.value:+.3f} % ± {loss.half_width:.3f}", verdict(loss)]


def verdict(loss: Mean) -> str:
    """What may be said of a loss, in per cent, against the aim."""
    if loss.value + loss.half_width < AIM:
        return f"below {AIM:g} %"
    if loss.value - loss.half_width > AIM:
        return f"missed: at least {loss.value - loss.half_width:.2f} %"
    return f"unresolved at ±{loss.half_width:.2f} %"


if __name__ == "__main__":
    run(main)
