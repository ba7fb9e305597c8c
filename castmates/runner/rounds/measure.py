"""Measures rounds, each of which has every scene in many short slices, until enough of them are clean."""

from collections.abc import Sequence

from castmates.protocols import Say
from castmates.runner import progress
from castmates.runner.outcome import Measured
from castmates.runner.rounds.pace import first_settle
from castmates.runner.rounds.round import Rounds
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.warm_up import warm_up
from castmates.runner.rounds.window import Window


def measure_rounds(outcome: Measured, stage: Stage, say: Say) -> None:
    """Measure rounds until enough of them are clean, or the spare ones are used up."""
    launch, design = outcome.launch, outcome.launch.design
    progress.rounds_begin(outcome)
    begin, lead = stage.now_ns(), launch.cohort.lead
    steps = warm_up(stage, launch)
    ready = stage.now_ns()
    outcome.settling = Settling(first_settle(design, steps, lead.name, lead.requests), design.longest_settle, lead.name)
    rounds = Rounds(outcome, stage, steps)
    say(rounds.about())
    number, last = 0, design.rounds + design.spare_rounds
    while outcome.rounds < design.rounds and number < last:
        number += 1
        rounds.prepare()
        windows = rounds.measure(number)
        outcome.windows += windows
        if too_short := rounds.learn(windows):
            # What was measured in shorter slices does not count, and does not use up the rounds.
            for window in outcome.windows:
                window.reasons.insert(0, too_short)  # before what shorter slices may have caused
            last = number + design.rounds + design.spare_rounds
            rounds.prepare()
            say(rounds.about())
        outcome.rounds = _clean_rounds(outcome.windows)
        say(f"round {number}: {_summary(windows)}")
        progress.round_ended(outcome, number)
    stage.switch([])
    # What a round costs decides how many there are; warming up is part of the start, however many rounds follow.
    outcome.warm_up_seconds, outcome.measure_seconds = (ready - begin) / 1e9, (stage.now_ns() - ready) / 1e9


def _clean_rounds(windows: Sequence[Window]) -> int:
    """How many rounds have no window that is rejected."""
    every = {window.round for window in windows}
    return len(every - {window.round for window in windows if window.reasons})


def _summary(windows: Sequence[Window]) -> str:
    """How many windows and slices a round had, and what was rejected in it."""
    slices = [each for window in windows for each in window.all_slices]
    parts = [f"{len(windows)} windows of {len(slices)} slices"]
    if lost := sum(bool(each.reasons) for each in slices):
        parts.append(f"{lost} slices rejected")
    return ", ".join(filter(None, [*parts, progress.summary(windows)]))
