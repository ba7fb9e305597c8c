"""A study that gets more launches after each look seldom has a loss that is none. Simulated (docs/methodology.md)."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import special

from castmates.analysis.effects.verdicts import EFFECT_LEVEL, effect_level, effect_verdicts
from castmates.analysis.statistics.intervals import holm
from castmates.report.answer.parts import Pair
from castmates.report.answer.settling import MOST, launches_for
from tests.sequential import holds

MARGIN, SPREAD, ALIKE = 0.02, 0.03, 0.3
FIRST, LOOKS = 5, 5


def false_loss(dice, pairs, adjusted=True):
    """Whether any look at a study without any loss proves one; launches are added as the first screen proposes."""
    values, launches, looks = np.empty((0, pairs)), FIRST, []
    while True:
        more = launches - len(values)
        common, own = dice.standard_normal((more, 1)), dice.standard_normal((more, pairs))
        values = np.vstack([values, SPREAD * (math.sqrt(ALIKE) * common + math.sqrt(1 - ALIKE) * own)])
        table = _estimates(values)
        level = effect_level(looks if adjusted else ())
        verdicts = effect_verdicts(table, MARGIN, level)
        if {"loss", "gain"} & set(verdicts):
            return True
        looks.append(launches)
        spread = math.sqrt((table["spread"] ** 2).mean())  # plans rest on all pairs of a lead together
        launches = _proposed(table[[word == "unclear" for word in verdicts]], spread, len(values), pairs)
        if launches > MOST or len(looks) == LOOKS:
            return False


def _estimates(values):
    launches = len(values)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(launches)
    half = special.stdtrit(launches - 1, 0.975) * error
    p = 2 * special.stdtr(launches - 1, -abs(mean / error))
    return pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half, "p_holm": holm(p),
                         "launches": launches, "spread": error * math.sqrt(launches)})  # fmt: skip


def _proposed(open_, spread, had, pairs):
    suspected = open_[(open_["low"] > 0) | (open_["high"] < 0)]
    needed = [launches_for(_pair(row, had), spread, pairs, MARGIN)
              for row in (suspected if len(suspected) else open_).itertuples()]  # fmt: skip
    return max((max(count, had + 1) for count in needed if count <= MOST), default=MOST + 1)


def _pair(row, launches):
    return Pair("a", "a+x", "a", "x", "unclear", row.mean, 0, 0, launches, row.mean, row.low, row.high, "")


@pytest.mark.simulation
@pytest.mark.parametrize("pairs", [1, 4])
def test_added_launches_hardly_add_false_losses(pairs):
    def right(number, adjusted):
        dice = np.random.default_rng([pairs, number])
        return sum(not false_loss(dice, pairs, adjusted) for _ in range(50)), 50

    assert holds(lambda number: right(number, adjusted=True), promised=0.947, refused=0.885, most=40)
    assert not holds(lambda number: right(number, adjusted=False), promised=0.947, refused=0.885, most=40)
    assert effect_level(()) == EFFECT_LEVEL


if __name__ == "__main__":
    for count in (1, 2, 4):
        for adjusted in (False, True):
            rng = np.random.default_rng(count)
            share = np.mean([false_loss(rng, count, adjusted) for _ in range(4000)])
            print(f"{count} pairs, {'stricter later' if adjusted else 'the same level'}: {100 * share:.1f} % false")
