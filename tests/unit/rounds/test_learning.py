"""What a round teaches about the settle time, and what becomes of the rounds before it."""

import pytest

from castmates.modelled.cast import Played, processes
from castmates.modelled.hardware import modelled_hardware
from castmates.modelled.stage import ModelledStage
from castmates.modelled.world import World
from castmates.runner.outcome import Outcome
from castmates.runner.rounds.round import MOST_LEFT_OUT, Rounds
from castmates.runner.rounds.settling import Settling, is_not_settled
from castmates.runner.rounds.warm_up import warm_up
from tests.unit.modelled.makers import QUIET, STUDY, project_of


@pytest.fixture
def rounds(tmp_path):
    block = project_of(tmp_path, STUDY + QUIET).plan().blocks[0]
    world = World(block.design.model, processes(block.company, {}), block.seed)
    cast = [Played(process, pid) for pid, process in enumerate(world.processes.values(), start=1000)]
    hardware = modelled_hardware(world, {process.name: process.pid for process in cast}, block.design.monitor)
    stage = ModelledStage(world, cast, hardware, lambda: None, {})
    hardware.attach(stage.held(), [member.name for member in block.company.members])
    outcome = Outcome(block, settling=Settling(0.005, 5.0, block.company.lead.name))
    return Rounds(outcome, stage, warm_up(stage, block))


@pytest.mark.parametrize(("share", "is_too_much"), [(MOST_LEFT_OUT - 0.05, False), (MOST_LEFT_OUT + 0.05, True)])
def test_slices_of_which_little_would_be_left_do_not_count(rounds, monkeypatch, share, is_too_much):
    """Judged by what is left, those whose steps are slow would be rejected, and those whose steps are quick kept."""
    settling, before = rounds.outcome.settling, rounds.pace.length_s
    windows = rounds.measure(1)
    rounds.outcome.windows += windows

    def learn(_):
        settling.seconds = share * before
        return ""

    monkeypatch.setattr(settling, "learn", learn)
    reason = rounds.learn(windows)
    assert is_not_settled([reason]) == is_too_much
    assert rounds.pace.length_s > before
    # What is known by now does not reject the rounds to come, which have longer slices.
    rounds.outcome.windows += rounds.measure(2)
    assert not rounds.learn(rounds.outcome.windows[-len(windows) :])
