"""What our looking costs: adjacent slices with nothing, and with what a launch collects in usual and watched ones.

The lead alone, and the first lead's antagonist alone, on the CPU that the runner may share; several launches, which
are the sample. A launch has both kinds of slices, so that its cost is their sum, weighted by how many there are of
each. The upper ends of its 95 % intervals are to be below 0.5 % of the rate.
"""

import argparse
import gc
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from benchmarks import launches, verdicts
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
from castmates.runner.rounds.pace import Pace, first_settle, pace_of
from castmates.runner.rounds.round import warm_up
from castmates.runner.rounds.slices import measure_slice, measure_watched
from castmates.runner.rounds.stage import Stage
from castmates.runner.staging import LiveStage, on_stage
from castmates.study.spec import UNMANAGED, Cohort, Launch, Scene

AIM = Aim(most=0.5)  # per cent
TOGETHER = 15  # turns between two looks after everyone, and between two looks at the time
PAUSE = 0.03  # seconds that all members are frozen before a slice; longer where attaching takes longer


class Arm(StrEnum):
    """What is read in a slice."""

    NOTHING = "nothing"
    USUAL = "usual"  # what is cheap, in every slice of a launch
    WATCHED = "watched"  # everything, in the last slice of each scene in a stretch


LOOKED_AT = (Arm.USUAL, Arm.WATCHED)


def _by_arm() -> dict[Arm, list[float]]:
    return {arm: [] for arm in Arm}


@dataclass
class Turns:
    """Slices of one launch, one of each arm in a turn, in the order in which turns were measured."""

    what: str
    slice: float = 0.0  # seconds
    share: float = 0.0  # of a launch's slices that are watched
    rates: dict[Arm, list[float]] = field(default_factory=_by_arm)
    runner: dict[Arm, list[float]] = field(default_factory=_by_arm)  # its share of a CPU
    still: dict[Arm, list[float]] = field(default_factory=_by_arm)  # seconds before the slice

    def losses(self, arm: Arm) -> Floats:
        """Of each turn in which both rates are known, in log units: noise of the slices does not shift their mean."""
        losses = np.log(self.rates[Arm.NOTHING]) - np.log(self.rates[arm])
        return np.asarray(losses[np.isfinite(losses)])

    def loss(self) -> float:
        """What a launch's slices of both kinds lose together."""
        usual, watched = (float(np.mean(self.losses(arm))) for arm in LOOKED_AT)
        return (1 - self.share) * usual + self.share * watched


def main() -> None:
    """Measure every lead in several launches, each in its share of the time, then print the table."""
    options = _options()
    report = Report("Perturbation: what our looking costs", "perturbation")
    study = launches.study_of(options.study, options.seed)
    found: list[Turns] = []
    minutes = options.minutes / options.launches / (len(options.leads) + 1)
    with scratch() as folder:
        plans = [launches.cohort_plan(study, lead, [options.antagonist], folder) for lead in options.leads]
        for launched in range(options.launches):
            for number, plan in enumerate(plans):
                launch = launches.numbered(plan, launched + 1)
                with _watched(launch, folder) as stage:
                    members = [launch.cohort.lead.name, *([launch.cohort.members[1].name] if number == 0 else [])]
                    pace = _pace(stage, launch)
                    for name in members:
                        found.append(turns_of(stage, launch, name, pace, TimeBox(minutes)))
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


def _pace(stage: Stage, launch: Launch) -> Pace:
    """What a launch of this cohort would begin with."""
    steps, lead = warm_up(stage, launch), launch.cohort.lead.name
    return pace_of(launch.design, steps, lead, first_settle(launch.design, steps, lead), stage.hardware.watch_s)


def watched_share(pace: Pace) -> float:
    """Which share of a scene's slices is watched: the last of a window, or one more where that one has to be longer."""
    stays_usual = pace.length_s - pace.settle_s >= pace.watch_s and not pace.slow
    return 1 / (pace.cycles if stays_usual else pace.cycles + 1)


def turns_of(stage: Stage, launch: Launch, name: str, pace: Pace, box: TimeBox) -> Turns:
    """One member alone, in slices in which nothing is read, what is cheap, and everything."""
    member = next(each for each in launch.cohort.members if each.name == name)
    place = "on a CPU of the runner's" if os.sched_getaffinity(0) & set(member.cpus) else "on a separate CPU"
    turns = Turns(f"{member.workload} alone, {place}", pace.length_s, watched_share(pace))
    scene = Scene(name="", kind="alone", mix="", active=(name,), placebos=(), partition=UNMANAGED)
    rng = random.Random(f"{launch.seed}/{name}")
    everything = stage.hardware
    _take_off(everything)
    say(f"{member.workload}: slices with and without collectors")
    try:
        for _ in box.portions():
            gc.collect()
            for _ in range(TOGETHER):
                for arm in rng.sample(list(Arm), len(Arm)):
                    _measure(stage, launch, scene, pace, arm, everything, turns)
            stage.look_after()
    finally:
        stage.hardware = everything
    return turns


def _measure(
    stage: Stage, launch: Launch, scene: Scene, pace: Pace, arm: Arm, everything: Hardware, turns: Turns
) -> None:
    """One slice, before which all members are frozen for the same time, whatever is read in it.

    What works inside of slices is attached before any of them, and taken off again at once where it is not to be
    there: a pause, and what attaching does to caches, would else be taken for the cost of what is attached.
    """
    begin = time.monotonic()
    stage.switch([])
    _attach(everything, stage)
    if arm == Arm.NOTHING:
        _take_off(everything)
    stage.hardware = Hardware.none() if arm == Arm.NOTHING else everything
    stage.rest_until(stage.now_ns() + int((PAUSE - (time.monotonic() - begin)) * 1e9))
    ready, busy = time.monotonic(), time.process_time()
    if arm == Arm.WATCHED:  # for as long as its series need; nobody is waited for
        members = {member.name: member for member in launch.cohort.members}
        each = measure_watched(stage, scene, replace(pace, slow=frozenset()), members, launch.design, 1)
    else:
        each = measure_slice(stage, scene, pace)
    took, busy = time.monotonic() - ready, time.process_time() - busy
    if arm != Arm.NOTHING:
        stage.switch([])
        _take_off(everything)
    turns.rates[arm].append(each.progress(scene.active[0]).rate)
    turns.runner[arm].append(busy / took)
    turns.still[arm].append(ready - begin)


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
def _watched(launch: Launch, folder: Path) -> Iterator[Stage]:
    """The whole cohort of a launch on stage, watched by all that a launch of its design collects."""
    members = launch.cohort.members
    with _all_on_stage(launch.cohort, folder) as stage:
        cpus = sorted({cpu for member in members for cpu in member.cpus})
        request = CacheRequest(rate=launch.design.monitor, driver=launch.design.driver, purpose="a benchmark")
        hardware = Hardware.choose(cpus, request, say, launch.design.counters)
        with stage.watched(hardware, [member.name for member in members]), _no_garbage_collection():
            yield stage


@contextmanager
def _all_on_stage(cohort: Cohort, folder: Path) -> Iterator[LiveStage]:
    """Launch a cohort's members and placebos, and hold them frozen, as a launch does."""
    everyone = {cpu for member in cohort.members for cpu in member.cpus}
    try:
        with (
            machine_lock("a benchmark"),
            beside(everyone, set(cohort.lead.cpus)),
            guarded() as warden,
            on_stage(cohort.lead.workload, warden) as stage,
        ):
            for start in starts.starts(cohort, folder, cache_folder()):
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


def _tell(found: Sequence[Turns], options: argparse.Namespace, report: Report) -> None:
    report.text(
        "Turns of three adjacent slices in random order, of the length and with the settle time with which a launch "
        "begins. In each the member is released, settles, and runs to the first step after the slice's length. "
        "*Usual*: perf events and all else that works inside slices are attached, and everything at the edges of "
        "slices is read. *Watched*: everything is read, also the monitor of the cache where there is one and series, "
        "for as long as they need. *Nothing*: all of this is off. Before each, everything is attached again, and all "
        f"members are frozen for {1e3 * PAUSE:.0f} ms or longer. A launch's loss is the sum of both kinds, weighted by "
        f"the share of its slices that are watched. {options.launches} launches of each lead; each gives one value."
    )
    rows = []
    for what in dict.fromkeys(turns.what for turns in found):
        launches = [one for one in found if one.what == what and all(len(one.losses(arm)) > 1 for arm in LOOKED_AT)]
        if not launches:
            continue
        within = [_within(launches, arm) for arm in LOOKED_AT]
        runner = [percent(float(np.mean([np.mean(one.runner[arm]) for one in launches])), 2) for arm in Arm]
        still = [f"{1e3 * np.median([one for each in launches for one in each.still[arm]]):.0f}" for arm in Arm]
        length, share = np.mean([(one.slice, one.share) for one in launches], axis=0).tolist()
        count = sum(len(one.rates[Arm.NOTHING]) for one in launches)
        about = [what, f"{1e3 * length:.0f}", percent(share, 0), str(len(launches)), str(count)]
        rows.append([*about, *within, ", ".join(runner), ", ".join(still)])
        if len(launches) > 1:
            loss = points(mean_of(np.array([one.loss() for one in launches])))
            report.found(verdicts.of_mean(f"{what}: loss of rate by what is collected", loss, "%", "launches", AIM))
            for arm in LOOKED_AT:
                alone = points(mean_of(np.array([one.losses(arm).mean() for one in launches])))
                report.found(verdicts.of_mean(f"{what}: of {arm} slices alone", alone, "%", "launches"))
    header = ["what", "slice, ms", "watched slices", "launches", "turns"]
    header += [f"loss in {arm} slices, turns as units (95 % within these launches)" for arm in LOOKED_AT]
    arms = ", ".join(Arm)
    report.table([*header, f"the runner's CPU time in a slice: {arms}", f"still before, ms: {arms}"], rows)


def _within(launches: Sequence[Turns], arm: Arm) -> str:
    found = points(mean_of(np.concatenate([one.losses(arm) for one in launches])))
    return f"{found.value:+.3f} % ± {found.half_width:.3f}"


if __name__ == "__main__":
    run(main)
