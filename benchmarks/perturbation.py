"""What our looking costs: adjacent slices with everything that a block collects and with nothing, in random order.

The lead alone, and the first lead's antagonist alone, on the CPU that the runner may share; several launches, the
sample. The upper ends of the 95 % intervals are to be below 0.5 % of the rate.
"""

import argparse
import gc
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import blocks, verdicts
from benchmarks.common import Report, TimeBox, arguments_of, beside, percent, run, say, scratch
from benchmarks.precision import Floats, mean_of, points
from benchmarks.verdicts import Aim
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.machine.lock import machine_lock
from castmates.protocols import Collector, Counter
from castmates.rdt.choose import CacheRequest
from castmates.runner.after_rounds.collector_costs import works_inside
from castmates.runner.cleanup.warden import guarded
from castmates.runner.processes import starts
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.pace import Pace, pace_of
from castmates.runner.rounds.slices import measure_slice
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.warm_up import warm_up
from castmates.runner.staging import LiveStage, on_stage
from castmates.study.spec import UNMANAGED, Block, Company, Scene

AIM = Aim(most=0.5)  # per cent
TOGETHER = 20  # pairs between two looks after everyone, and between two looks at the time
PAUSE = 0.03  # seconds that all members are frozen before a slice; longer where attaching takes longer


@dataclass
class Pairs:
    """Slices of one launch without and with all that is collected, in the order in which pairs were measured."""

    what: str
    slice: float = 0.0  # seconds
    rates: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})  # with it?
    runner: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})  # its share of a CPU
    still: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})  # seconds before the slice

    @property
    def losses(self) -> Floats:
        """Of each pair in which both rates are known, in log units: noise of the slices does not shift their mean."""
        losses = np.log(self.rates[False]) - np.log(self.rates[True])
        return np.asarray(losses[np.isfinite(losses)])


def main() -> None:
    """Measure every lead in several launches, each in its share of the time, then print the table."""
    options = _options()
    report = Report("Perturbation: what our looking costs", "perturbation")
    study = blocks.study_of(options.study, options.seed)
    found: list[Pairs] = []
    minutes = options.minutes / options.launches / (len(options.leads) + 1)
    with scratch() as folder:
        plans = [blocks.company_plan(study, lead, [options.antagonist], folder) for lead in options.leads]
        for launched in range(options.launches):
            for number, plan in enumerate(plans):
                block = blocks.numbered(plan, launched + 1)
                with _watched(block, folder) as stage:
                    members = [block.company.lead.name, *([block.company.members[1].name] if number == 0 else [])]
                    pace = _pace(stage, block)
                    for name in members:
                        found.append(pairs_of(stage, block, name, pace, TimeBox(minutes)))
    _tell(found, options, report)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=10)
    parser.add_argument("--leads", nargs="+", default=["chase", "mobilenetv2-infer"], help="each in separate launches")
    parser.add_argument("--launches", type=int, default=5, help="of each lead")
    parser.add_argument("--antagonist", default="compute", help="the workload that may share its CPU with the runner")
    parser.add_argument(
        "--study", type=Path, default=Path("config/config.yaml"), help="study that provides the catalogue"
    )
    return parser.parse_args()


def _pace(stage: Stage, block: Block) -> Pace:
    """The length of slices that a block of this company would begin with."""
    return pace_of(block.design, warm_up(stage, block), block.company.lead.name, block.design.settle, 0.0)


def pairs_of(stage: Stage, block: Block, name: str, pace: Pace, box: TimeBox) -> Pairs:
    """One member alone, in slices with everything that a block collects and with nothing."""
    member = next(each for each in block.company.members if each.name == name)
    place = "on a CPU of the runner's" if os.sched_getaffinity(0) & set(member.cpus) else "on a separate CPU"
    pairs = Pairs(f"{member.workload} alone, {place}", pace.length_s)
    scene = Scene(name="", kind="solo", mix="", active=(name,), placebos=(), partition=UNMANAGED)
    rng = random.Random(f"{block.seed}/{name}")
    everything = stage.hardware
    _take_off(everything)
    say(f"{member.workload}: slices with and without collectors")
    try:
        for _ in box.portions():
            gc.collect()
            for _ in range(TOGETHER):
                for on in rng.sample([False, True], 2):
                    _measure(stage, scene, pace, on, everything, pairs)
            stage.look_after()
    finally:
        stage.hardware = everything
    return pairs


def _measure(stage: Stage, scene: Scene, pace: Pace, on: bool, everything: Hardware, pairs: Pairs) -> None:
    """One slice, before which all members are frozen for the same time, whether it is watched or not.

    What works inside of slices is attached before either, and taken off again at once where it is not to be there: a
    pause, and what attaching does to caches, would else be taken for the cost of what is attached.
    """
    begin = time.monotonic()
    stage.switch([])
    _attach(everything, stage)
    if not on:
        _take_off(everything)
    stage.hardware = everything if on else Hardware.none()
    stage.rest_until(stage.now_ns() + int((PAUSE - (time.monotonic() - begin)) * 1e9))
    ready, busy = time.monotonic(), time.process_time()
    each = measure_slice(stage, scene, pace)
    took, busy = time.monotonic() - ready, time.process_time() - busy
    if on:
        stage.switch([])
        _take_off(everything)
    pairs.rates[on].append(each.progress(scene.active[0]).rate)
    pairs.runner[on].append(busy / took)
    pairs.still[on].append(ready - begin)


def _attach(hardware: Hardware, stage: Stage) -> None:
    """Attach what costs something inside of slices, read or not, while all members are frozen."""
    held = stage.held()
    for collector in filter(works_inside, hardware.collectors):
        collector.attach({name: each.pid for name, each in held.items()})
    for counter in filter(works_inside, hardware.counters):
        counter.attach(held)


def _take_off(hardware: Hardware) -> None:
    """Close what costs something inside of slices."""
    parts: tuple[Collector | Counter, ...] = (*hardware.collectors, *hardware.counters)
    for part in parts:
        if works_inside(part):
            part.close()


@contextmanager
def _watched(block: Block, folder: Path) -> Iterator[Stage]:
    """The whole company of a block on stage, watched by all that a block of its design collects."""
    members = block.company.members
    with company_on_stage(block.company, folder, placebos=True) as stage:
        cpus = sorted({cpu for member in members for cpu in member.cpus})
        hardware = Hardware.choose(cpus, CacheRequest(rate=0), say, block.design.counters)
        with stage.watched(hardware, [member.name for member in members]), _no_garbage_collection():
            yield stage


@contextmanager
def company_on_stage(company: Company, folder: Path, placebos: bool = False) -> Iterator[LiveStage]:
    """Launch a company's members, with placebos on request, and hold them frozen, as a block does."""
    everyone = {cpu for member in company.members for cpu in member.cpus}
    names = {member.name for member in company.members}
    try:
        with (
            machine_lock("a benchmark"),
            beside(everyone, set(company.lead.cpus)),
            guarded() as warden,
            on_stage(company.lead.workload, warden) as stage,
        ):
            for start in starts.starts(company, folder, cache_folder()):
                if placebos or start.name in names:
                    stage.launch(start, stage.scratch.files)
            stage.await_ready()
            yield stage
    except WorkloadFailed as failure:
        raise CastmatesError(f"a member of the benchmark failed: {failure}") from None


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _tell(found: Sequence[Pairs], options: argparse.Namespace, report: Report) -> None:
    report.text(
        "Pairs of adjacent slices in random order, each as a block measures it: the member is released, settles, and "
        "runs to the first step after the slice's length. With everything: perf events and all else that works inside "
        "slices are attached, and everything at the edges of slices is read. With nothing: all of this is off. "
        f"Before each, everything is attached anew, and all members are frozen for {1e3 * PAUSE:.0f} ms or longer. "
        "Watched slices, one of each scene in a stretch, are not included. "
        f"{options.launches} launches of each lead; each gives the mean of its pairs."
    )
    rows = []
    for what in dict.fromkeys(pairs.what for pairs in found):
        launches = [pairs for pairs in found if pairs.what == what and len(pairs.losses) > 1]
        everything = points(mean_of(np.concatenate([pairs.losses for pairs in launches])))
        runner = [percent(float(np.mean([np.mean(one.runner[on]) for one in launches])), 2) for on in (True, False)]
        count = sum(len(pairs.losses) for pairs in launches)
        length = 1e3 * float(np.mean([pairs.slice for pairs in launches]))
        within = f"{everything.value:+.3f} % ± {everything.half_width:.3f}"
        still = [f"{1e3 * np.median([one for each in launches for one in each.still[on]]):.0f}" for on in (True, False)]
        rows.append([what, f"{length:.0f}", str(len(launches)), str(count), within, *runner, *still])
        if len(launches) > 1:
            loss = points(mean_of(np.array([pairs.losses.mean() for pairs in launches])))
            report.found(verdicts.of_mean(f"{what}: loss of rate by what is collected", loss, "%", "launches", AIM))
    header = ["what", "slice, ms", "launches", "pairs", "loss, pairs as units (95 % within these launches)"]
    header += ["the runner's CPU time in a slice, with everything", "with nothing"]
    report.table([*header, "still before, ms, with everything", "with nothing"], rows)


if __name__ == "__main__":
    run(main)
