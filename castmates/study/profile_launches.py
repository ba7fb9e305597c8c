"""The launches of a study in which its leads are traced: a few of each cohort, apart from the measured ones."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from castmates.study.model import Study
from castmates.study.spec import Cohort, Counting, Design, Launch, Plan, Profiling
from castmates.study.tracing_keys import ProfileKeys
from castmates.study.written import bytes_of


class Traced(NamedTuple):
    """How a framework's profiler traces."""

    steps_before: int  # that a job makes before its first trace
    leaves_out: bool = False  # whether short operations are missing
    logs: bool = False  # whether it can leave oneDNN's log of each trace
    begins_anew: bool = False  # whether a job that reads records can begin with the first one anew


# The jobs that trace their steps. TensorFlow leaves operations out of a trace that it has found to take less than 8,000
# cycles, and finds out in about 90 untraced steps: earlier traces of one graph show different operations. PyTorch and
# XLA leave nothing out: all their traces of one job have the same calls, and a few steps are enough.
TRACED = {
    "castmates.workloads.tfmodels": Traced(120, leaves_out=True, logs=True, begins_anew=True),
    "castmates.workloads.torchjobs": Traced(8, logs=True),
    "castmates.workloads.jaxjobs": Traced(8),
}
FOLLOWED = {  # not ours, by framework
    "tensorflow": Traced(120, leaves_out=True, logs=True),
    "torch": Traced(8, logs=True),
    "jax": Traced(8),
}
WHO_CAN = "only jobs of the Model Garden, PyTorch and JAX can, and Python programs with the key 'attach'"
CANNOT_LOG = "cannot leave oneDNN's log: only TensorFlow and PyTorch can"
CANNOT_BEGIN = "cannot begin with the first record: only jobs of the Model Garden that read records can"
NOTHING = Counting(cost_pairs=0, series=0.0)  # is counted while steps are traced
# Launches under oneDNN's log are numbered from here on: those without it, 100 at most, keep their numbers and seeds.
LOGGED_FROM = 101
FIRST_EPOCH_FROM = 201  # of launches whose traces begin with the input
FIRST, CACHED = "first", "cached"  # epochs: records come from storage, or from the page cache
FROM_RECORDS, FROM_MEMORY = re.compile(r" --data[ =]"), re.compile(r" --source[ =]memory( |$)")  # in such a command


def profile_launches(study: Study, cohorts: Iterable[Cohort], usual: Design) -> tuple[Launch, ...]:
    """Plan them from the `usual` design of measured launches; none without the key `profile`, or traces of leads."""
    keys = study.profile
    if keys is None:
        return ()
    return tuple(
        Launch(study=study.name, cohort=cohort, number=number, seed=_seed(study.seed, cohort, number), design=design)
        for cohort in sorted(cohorts, key=lambda each: each.id)
        for first, design in _kinds(keys, usual, cohort)
        for number in range(first, first + keys.launches)
    )


def _kinds(keys: ProfileKeys, usual: Design, cohort: Cohort) -> Iterator[tuple[int, Design]]:
    """The kinds of launches that a cohort has: the number of the first one, and their design."""
    how = traced_by(cohort)
    if how is None:
        return
    yield 1, _design(keys, usual)
    if keys.primitives and how.logs:
        yield LOGGED_FROM, _design(keys, usual, primitives=True)
    if keys.first_epoch and begins_anew(cohort):
        yield FIRST_EPOCH_FROM, _design(keys, usual, first_epoch=True)


def traced_by(cohort: Cohort) -> Traced | None:
    """How the lead's steps are traced; None where it neither traces them when it is asked to, nor is made to do so."""
    if cohort.lead.attach:
        return FOLLOWED[cohort.lead.attach]
    words = cohort.lead.command
    if LITE in pairwise(words):
        return None
    return next((how for job, how in TRACED.items() if any(word.startswith(job) for word in words)), None)


def begins_anew(cohort: Cohort) -> bool:
    """Whether the lead reads records, and can begin with the first one anew."""
    how, words = traced_by(cohort), " ".join(cohort.lead.command)
    reads = FROM_RECORDS.search(words) is not None and FROM_MEMORY.search(words) is None
    return how is not None and how.begins_anew and reads


def identity_of(launch: Launch) -> str:
    """What decides whether a profile launch has to be made again: not how many rounds or windows launches have."""
    cohort = launch.cohort
    mixes = sorted(mix.identity for mix in cohort.mixes)
    traced, profiling = "", launch.design.profiling
    if profiling is not None:
        traced = f"{profiling.steps} {profiling.times} {' '.join(sorted(set(profiling.scenes)))}"
        traced += " ranges" if profiling.ranges else ""
        traced += " primitives" if profiling.primitives else ""
        traced += " first epoch" if profiling.first_epoch else ""
    return f"{cohort.id} {cohort.protocol} {launch.number} {launch.seed} {traced} {' '.join(mixes)}"


def traces_of(launch: Launch) -> int:
    """How many traces a profile launch takes."""
    profiling, cohort = launch.design.profiling, launch.cohort
    if profiling is None:
        return 0
    scenes = [each for each in cohort.scenes if each.kind in profiling.scenes and cohort.lead.name in each.active]
    return profiling.times * len(scenes) * (2 if profiling.first_epoch else 1)


def cannot_be_profiled(study: Study, plan: Plan) -> list[str]:
    """The leads that a study with the key `profile` wants traced, and that cannot be; without those of controls."""
    if study.profile is None:
        return []
    results = {mix.identity for mix in plan.mixes}
    wanted = [cohort for cohort in plan.cohorts if any(mix.identity in results for mix in cohort.mixes)]
    return sorted({cohort.lead.workload for cohort in wanted if traced_by(cohort) is None})


def cannot_log(study: Study, plan: Plan) -> list[str]:
    """Leads that are traced, but leave no log of primitives where the study asks for one."""
    if study.profile is None or not study.profile.primitives:
        return []
    logged = {launch.cohort.id for launch in plan.profiles if is_logged(launch)}
    return sorted({launch.cohort.lead.workload for launch in plan.profiles if launch.cohort.id not in logged})


def cannot_begin_anew(study: Study, plan: Plan) -> list[str]:
    """Leads that are traced, but not from the first record on where the study asks for that."""
    if study.profile is None or not study.profile.first_epoch:
        return []
    return sorted({launch.cohort.lead.workload for launch in plan.profiles if not begins_anew(launch.cohort)})


def is_of_first_epoch(launch: Launch) -> bool:
    """Whether the traces of this launch begin with the first record."""
    return launch.design.profiling is not None and launch.design.profiling.first_epoch


def is_logged(launch: Launch) -> bool:
    """Whether oneDNN logs what it executes in this launch."""
    return launch.design.profiling is not None and launch.design.profiling.primitives


def _design(keys: ProfileKeys, usual: Design, *, primitives: bool = False, first_epoch: bool = False) -> Design:
    """That of measured launches, with traces in the place of rounds and counters."""
    profiling = Profiling(
        steps=keys.steps,
        times=keys.times,
        scenes=tuple(keys.scenes),
        keep=bytes_of(keys.keep),
        ranges=keys.ranges,
        primitives=primitives,
        first_epoch=first_epoch,
    )
    changes = {"rounds": 0, "spare_rounds": 0, "monitor": 0.0, "slice": None, "counters": NOTHING}
    return usual.model_copy(update={**changes, "profiling": profiling})


def _seed(study_seed: int, cohort: Cohort, number: int) -> int:
    return random.Random(f"{study_seed}/profile/{cohort.id}/{number}").getrandbits(32)


# What a launch does after its rounds, known before anything runs: windows that show costs, and profiled steps.

LONGEST_COST_WINDOW = 0.3  # seconds
PROFILE = 3.0  # seconds to start and read a profile, beside its steps: a guess
JOBS = "castmates.workloads.tfmodels"  # whose leads can be profiled
LITE = ("--engine", "lite")  # words of a command: TensorFlow Lite has no such profiler
PROFILED_KINDS = ("alone", "corun")  # of scenes


def cost_windows(design: Design) -> int:
    """The windows that show what measuring costs, at most: the machine may lack some collectors."""
    counting = design.counters
    each = 1 + bool(counting.series)  # a counter, and its series
    together = 1 + bool(design.monitor) + each * bool(counting.events)  # migrations are always counted
    # Top-Down has separate rounds, and in them a separate window with everything on.
    return counting.cost_pairs * (1 + together + (1 + each) * bool(counting.topdown))


def can_be_profiled(cohort: Cohort) -> bool:
    """Whether the lead is a program that traces its steps when it is asked to, or is made to do so from outside."""
    command = cohort.lead.command
    ours = any(word.startswith(JOBS) for word in command) and LITE not in pairwise(command)
    return ours or cohort.lead.attach == "tensorflow"


def profiled_scenes(launch: Launch) -> int:
    """The scenes in which steps of the lead are profiled."""
    wanted = can_be_profiled(launch.cohort) and launch.design.counters.profile
    return sum(scene.kind in PROFILED_KINDS for scene in launch.cohort.scenes) if wanted else 0


def seconds(launch: Launch) -> float:
    """How much longer a launch takes, without the steps that are profiled: how long those are is not known."""
    design = launch.design
    window = 1.1 * min(design.window, LONGEST_COST_WINDOW)
    return cost_windows(design) * window + profiled_scenes(launch) * (design.settle + PROFILE)


def after_rounds_line(launches: Sequence[Launch]) -> str:
    """What is added to each launch, in a sentence; "" where nothing is added."""
    windows = max((cost_windows(launch.design) for launch in launches), default=0)
    scenes = max((profiled_scenes(launch) for launch in launches), default=0)
    parts = []
    if windows:
        parts.append(f"up to {windows} short windows of the lead alone, which show what measuring costs")
    if scenes:
        steps = max(launch.design.counters.profile for launch in launches)
        parts.append(f"{steps} profiled steps of the lead in each of up to {scenes} scenes, which enter no rate")
    if not parts:
        return ""
    more = " and the time of these steps" if scenes else ""
    return f"After the rounds of a launch: {'; '.join(parts)} (about {max(map(seconds, launches)):.0f} s{more})."
