"""What a round teaches about the settle time, and what becomes of the rounds before it."""

from dataclasses import replace

import pytest

from castmates.runner.modelled.cast import Played, processes
from castmates.runner.modelled.hardware import modelled_hardware
from castmates.runner.modelled.stage import ModelledStage
from castmates.runner.modelled.world import World
from castmates.runner.outcome import Measured
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.measure import measure_rounds
from castmates.runner.rounds.pace import SETTLES, STEPS
from castmates.runner.rounds.round import MOST_LEFT_OUT, Rounds
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.warm_up import warm_up
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


def test_what_is_found_later_takes_half_of_the_slices_at_most(rounds, monkeypatch):
    """Judged by the little that is left, those with slow steps would be rejected, and those with quick ones kept."""
    settling, before = rounds.outcome.settling, rounds.pace.length_s
    windows = rounds.measure(1)
    rounds.outcome.windows += windows

    def learn(_):
        settling.seconds = 0.9 * before
        return ""

    monkeypatch.setattr(settling, "learn", learn)
    assert not rounds.learn(windows)
    lead = rounds.outcome.launch.cohort.lead.name
    assert not [each.reasons for window in windows for each in window.slices if each.reasons]
    for each in (each for window in windows for each in window.slices if lead in each.since_switch):
        assert each.begin_ns(lead) - each.switch_ns == pytest.approx(MOST_LEFT_OUT * before * 1e9, rel=0.01)
    assert rounds.outcome.pace.length_s == before, "no round was measured with another length yet"
    rounds.prepare()
    assert rounds.pace.length_s >= SETTLES * 0.9 * before
    for each in rounds.measure(2)[0].slices:
        assert each.steady_s(lead) == pytest.approx(0.9 * before)
        assert each.length_s == rounds.pace.length_s
    assert [pace.length_s for pace in rounds.outcome.paces.values()] == [before, rounds.pace.length_s]


def test_the_record_has_the_lengths_that_rounds_were_measured_with(rounds, monkeypatch):
    """What the last round teaches changes what is left out of its slices, and not how long they were."""
    settling, outcome, used = rounds.outcome.settling, rounds.outcome, []

    def learn(_):
        used.append(0)
        settling.seconds = 0.02 * len(used)
        return ""

    monkeypatch.setattr(settling, "learn", learn)
    monkeypatch.setattr("castmates.runner.rounds.measure.Settling", lambda *_: settling)
    monkeypatch.setattr("castmates.runner.rounds.measure.progress.rounds_begin", lambda _: None)
    monkeypatch.setattr("castmates.runner.rounds.measure.progress.round_ended", lambda *_: None)
    outcome.paces.clear()
    measure_rounds(outcome, rounds.stage, lambda _: None)
    assert len(used) == outcome.launch.design.rounds
    for each in (each for window in outcome.windows for each in window.all_slices):
        assert each.length_s == outcome.paces[each.round].length_s
        assert each.length_s >= SETTLES * outcome.paces[each.round].settle_s
    assert outcome.pace is outcome.paces[len(used)]
    assert outcome.pace.settle_s == pytest.approx(0.02 * (len(used) - 1))
