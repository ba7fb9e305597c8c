"""Measures rounds, each of which has every scene once, until enough of them are clean."""

from castmates.protocols import Say
from castmates.runner.outcome import Outcome
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.window import Window, measure_window
from castmates.study.schedule import round_order


def measure_rounds(outcome: Outcome, stage: Stage, say: Say) -> None:
    """Measure rounds until enough of them are clean, or the spare ones are used up."""
    block, design = outcome.block, outcome.block.design
    outcome.settling = settling = Settling(design.settle, design.longest_settle)
    members = {member.name: member for member in block.company.members}
    ledger = Ledger(stage, members, design, frozenset(outcome.runner_cpus))
    number, last = 0, design.rounds + design.spare_rounds
    while outcome.rounds < design.rounds and number < last:
        number += 1
        windows = _round(outcome, stage, ledger, number)
        too_early = settling.learn(windows)
        for window in windows:
            window.since_switch.clear()
        outcome.windows += windows
        if too_early:  # what was measured with the shorter settle time does not count, and does not use up the rounds
            for window in outcome.windows:
                window.reasons.append(too_early)
            outcome.rounds, last = 0, number + design.rounds + design.spare_rounds
        rejected = list(dict.fromkeys(reason for window in windows for reason in window.reasons))
        outcome.rounds += not rejected
        say(f"round {number}: {len(windows)} windows" + (f", rejected: {'; '.join(rejected)}" if rejected else ""))


def _round(outcome: Outcome, stage: Stage, ledger: Ledger, number: int) -> list[Window]:
    """Measure every scene once, in the order of this round."""
    design = ledger.design.model_copy(update={"settle": outcome.settle_seconds})
    windows: list[Window] = []
    for position, scene in enumerate(round_order(outcome.block, number), start=1):
        window = measure_window(stage, scene, ledger.members, design, number)
        window.position = position
        window.reasons = ledger.judge(window)
        windows.append(window)
    return windows
