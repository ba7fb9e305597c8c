"""What a launch does after its rounds, known before anything runs: windows that show costs, and profiled steps."""

from collections.abc import Sequence
from itertools import pairwise

from castmates.study.spec import Cohort, Design, Launch

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
    return ours or bool(cohort.lead.attach)


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
