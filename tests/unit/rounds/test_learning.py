"""What a round teaches about the settle time, and what becomes of the rounds before it."""

from dataclasses import replace

import pytest

from castmates.runner.modelled.hardware import modelled_hardware
from castmates.runner.modelled.launch import ModelledStage, Played, processes
from castmates.runner.modelled.world import World
from castmates.runner.outcome import Measured
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.pace import STEPS
from castmates.runner.rounds.round import Rounds, warm_up
from castmates.runner.rounds.settling import Settling
from tests.unit.modelled.makers import QUIET, STUDY, SWEEPS, project_of


def test_nobody_runs_while_a_stretch_is_judged(rounds, monkeypatch):
    """The runner sits on a member's CPU, or beside one."""
    moving = []
    monkeypatch.setattr(Ledger, "judge_stretch", lambda *_: moving.append(set(rounds.stage._moving)))
    rounds.measure(1)
    assert moving == [set()] * len(moving) != []


@pytest.fixture
def rounds(tmp_path):
    return rounds_of(project_of(tmp_path, STUDY + QUIET).plan().launches[0])


def test_slices_have_enough_steps_under_the_narrowest_mask_too(tmp_path):
    """Else the lead lacks steps where it has little cache, and its windows are rejected where it loses most."""
    made = rounds_of(project_of(tmp_path, STUDY + SWEEPS + QUIET).plan().launches[0])
    lead = made.outcome.launch.cohort.lead.name
    warm = made.steps.of_member[lead]
    made.steps = replace(made.steps, of_member={**made.steps.of_member, lead: 0.3 * warm})  # as if quick without masks
    made.learn(made.measure(1))
    made.prepare()
    assert made.steps.of_scene.keys() == {scene.name for scene in made.outcome.launch.cohort.scenes}
    masked = [
        step for scene, step in made.steps.of_scene.items() if "@" in scene and not scene.startswith("antagonist-alone")
    ]
    narrow = max(masked)
    assert made.steps.of_member[lead] == narrow > 0.5 * warm
    assert made.pace.length_s - made.pace.settle_s >= STEPS * narrow


def rounds_of(launch):
    world = World(launch.design.model, processes(launch.cohort, {}), launch.seed)
    cast = [Played(process, pid) for pid, process in enumerate(world.processes.values(), start=1000)]
    hardware = modelled_hardware(world, {process.name: process.pid for process in cast}, launch.design.monitor)
    stage = ModelledStage(world, cast, hardware, lambda: None, {})
    hardware.attach(stage.held(), [member.name for member in launch.cohort.members])
    outcome = Measured(launch, settling=Settling(0.005, 5.0, launch.cohort.lead.name))
    return Rounds(outcome, stage, warm_up(stage, launch))
