"""The gate opens for masks that work, and for no others."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.study.cache import Cache
from castmates.study.rdt_trial import WORKS
from castmates.trials.rdt.masks import (
    NO_EFFECT,
    NOT_FOLLOWING,
    ROUNDS,
    RULE,
    UNDECIDED,
    Plateau,
    fewest,
    follows,
    in_words,
    judge,
    mask_of,
    plateaus,
    slowdown,
    steps_of,
    times,
)

WAY = 1 << 20


def cache(ways=12, least=1, shareable=0, events=("llc_occupancy",)):
    return Cache(
        domains=(0,), ways=ways, way_bytes=WAY, least_ways=least, sparse=False, shareable=shareable, groups=7,
        cdp=False, bandwidth=None, events=events, monitored_groups=31,
    )  # fmt: skip


class Machine:
    """A cache of which nothing is known but what a chase sees: its time by ways, and what it occupies."""

    def __init__(self, effect, noise=0.02, filled=1.0, seed=1, told=True, drift=0.0):
        self.effect, self.noise, self.filled, self.told, self.drift = effect, noise, filled, told, drift
        self.dice, self.mask, self.given, self.clock = random.Random(seed), 0, [], 0

    def set_mask(self, mask):
        self.mask = mask
        self.given.append(mask)

    def ns_per_load(self):
        self.clock += 1
        missing = self.effect if self.mask.bit_count() <= 2 else 1.0
        return 40 * missing * math.exp(self.dice.gauss(0, self.noise) + self.drift * self.clock)

    def occupied(self):
        return self.filled * self.mask.bit_count() * WAY if self.told else None


def tried(machine, here=None):
    here = here or cache()
    measured, told = times(machine, here), plateaus(machine, here, WAY)
    ratio = slowdown(measured)
    verdict = judge(ratio, follows(told))
    return verdict, in_words(verdict, ratio, len(measured.few), told)


@pytest.mark.parametrize(
    ("machine", "verdict"),
    [
        (Machine(effect=2.5), WORKS),
        (Machine(effect=2.5, told=False), WORKS),
        (Machine(effect=1.0), NO_EFFECT),
        (Machine(effect=1.0, noise=0.0), NO_EFFECT),
        (Machine(effect=2.5, filled=0.1), NOT_FOLLOWING),
        (Machine(effect=2.5, filled=3.0), NOT_FOLLOWING),
        (Machine(effect=1.15, noise=0.5), UNDECIDED),
        (Machine(effect=2.5, drift=0.05), WORKS),
        (Machine(effect=1.0, drift=0.01), NO_EFFECT),
    ],
)
def test_verdicts(machine, verdict):
    found, said = tried(machine)
    assert found == verdict
    assert "\n" not in said
    assert said.endswith(".")


def test_a_machine_without_effect_hardly_ever_works():
    """At the edge of the rule, where a mistake is likeliest: half of what lies outside the interval."""
    wrong = 0
    for seed in range(1000):
        machine = Machine(effect=RULE.least_ratio, noise=0.1, seed=seed)
        wrong += judge(slowdown(times(machine, cache(), seed=seed)), None) == WORKS
    assert wrong < 20  # 5 expected; the binomial's 99.999 % bound is 18


def test_what_is_not_decided_is_looked_at_again_and_no_longer_than_said_before():
    tried_out = [times(Machine(effect=1.0, noise=0.14, seed=seed), cache(), seed=seed) for seed in range(20)]
    assert {len(found.few) for found in tried_out} == set(RULE.looks.at)
    verdicts = [judge(slowdown(found), None) for found in tried_out]
    assert verdicts.count(NO_EFFECT) > 10
    assert WORKS not in verdicts
    assert len(times(Machine(effect=RULE.least_ratio, noise=0.3), cache()).few) == RULE.looks.at[-1]


def test_occupancy_that_does_not_grow_does_not_follow():
    assert follows([Plateau(1, WAY, 1.0 * WAY), Plateau(2, 2 * WAY, 1.0 * WAY)]) is False
    assert follows([Plateau(1, WAY, 0.9 * WAY), Plateau(2, 2 * WAY, 1.9 * WAY)]) is True
    assert follows([Plateau(1, WAY, 0.9 * WAY)]) is None
    assert follows([Plateau(1, WAY, None), Plateau(2, 2 * WAY, None)]) is None


def test_both_windows_of_a_pair_are_measured_and_either_may_come_first():
    machine = Machine(effect=2.0)
    found = times(machine, cache())
    assert len(found.few) == len(found.all) == RULE.looks.at[0]
    pairs = [tuple(machine.given[n : n + 2]) for n in range(0, len(machine.given), 2)]
    assert set(pairs) == {(1, 0xFFF), (0xFFF, 1)}


@given(ways=st.integers(2, 32), least=st.integers(0, 2), shareable=st.integers(0, 2**32 - 1), share=st.floats(0, 1))
def test_masks_are_what_a_machine_takes(ways, least, shareable, share):
    here = cache(ways, least, shareable & ((1 << ways) - 1))
    wanted = fewest(here) + int(share * (ways - fewest(here)))
    mask = mask_of(here, wanted)
    assert mask.bit_count() == wanted
    assert mask & ~here.full == 0
    assert bin(mask).strip("0b").count("0") == 0  # side by side
    for other in range(here.ways - wanted + 1):
        elsewhere = ((1 << wanted) - 1) << other
        assert (mask & here.shareable).bit_count() <= (elsewhere & here.shareable).bit_count()
    assert all(fewest(here) <= step < ways / 2 for step in steps_of(here))


def test_every_mask_is_seen_going_up_and_coming_down():
    machine = Machine(effect=2.0)
    plateaus(machine, cache(), WAY)
    widths = [mask.bit_count() for mask in machine.given]
    assert widths == [1, 2, 3, 5, 5, 3, 2, 1]
    assert ROUNDS == 2
