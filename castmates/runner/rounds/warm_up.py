"""Lets every scene run for a moment before the first round, and times steps and changes of scene."""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from castmates.runner.rounds.pace import STEPS, Steps
from castmates.runner.rounds.slices import who_runs
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import UNMANAGED, Launch, Member, Scene

SHORTEST = 0.1  # seconds that a scene runs
LOOK = 0.02  # seconds between two looks


def warm_up(stage: Stage, launch: Launch) -> Steps:
    """Run each scene without a partition until who ends its slices has made a few steps; report how long they took."""
    members = {member.name: member for member in launch.cohort.members}
    scenes = [scene for scene in launch.cohort.scenes if scene.partition == UNMANAGED]
    random.Random(f"{launch.seed}/warm-up").shuffle(scenes)
    of_scene: dict[str, float] = {}
    of_member: dict[str, float] = {}
    switches = []
    for scene in scenes:
        switches.append(_switch(stage, who_runs(scene)))
        took = _run(stage, scene, members, launch.design.longest_window)
        of_scene[scene.name] = took[scene.active[0]]
        for name, step in took.items():
            of_member[name] = max(step, of_member.get(name, 0.0))
    stage.look_after()
    return Steps(of_scene, of_member, median(switches))


def _switch(stage: Stage, names: Sequence[str]) -> float:
    """Change to a scene as between two slices, both edges included; return the seconds that this took."""
    begin = stage.now_ns()
    stage.hardware.open_slice(names)
    stage.hardware.close_slice()
    stage.exchange(names)
    stage.forget_beats()
    return (stage.now_ns() - begin) / 1e9


def _run(stage: Stage, scene: Scene, members: Mapping[str, Member], longest: float) -> dict[str, float]:
    """Run a scene for a moment; return how long a step of each member took, at least."""
    begin = stage.now_ns()
    first = stage.cast[scene.active[0]]
    while True:
        stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))
        passed = (stage.now_ns() - begin) / 1e9
        enough = len(first.records) > STEPS + 1 and passed >= SHORTEST
        if enough or passed >= longest:
            break
    # Who ends the slices was waited for as long as is ever waited; others may need any time.
    unseen = {name: passed if name == scene.active[0] else math.inf for name in scene.active if name in members}
    return {name: step_of(stage.cast[name].records, otherwise) for name, otherwise in unseen.items()}


def step_of(records: Sequence[tuple[int, int]], otherwise: float) -> float:
    """The usual time between two heartbeats, where it was seen."""
    gaps = [after - before for (before, _), (after, _) in pairwise(records)]
    return median(gaps) / 1e9 if gaps else otherwise
