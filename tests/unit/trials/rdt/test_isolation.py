"""Masks isolate where a neighbour with other ways stays out, and the trial could have seen that it does not."""

import math

import pytest

from castmates.study.rdt_trial import WORDS
from castmates.trials.rdt.isolation import (
    RULE,
    SENTENCES,
    Ways,
    in_words,
    judge,
    pairs_of_ways,
    slowdown,
    tried,
    ways_beside_io,
)
from tests.unit.caches import cache
from tests.unit.trials.rdt.simulated import WAY, Cache

LOWER, UPPER = 0x1FF, 0xE00
EDGE = RULE.traffic


def verdict(machine):
    return judge(tried(machine, Ways(LOWER, UPPER)))


@pytest.mark.parametrize(
    ("machine", "word"),
    [
        (Cache(), "isolated"),
        (Cache(reads=lambda _: None), "isolated"),
        (Cache(leaks=1.0), "not isolated"),  # SKZ18: fills of the neighbour ignore their mask
        (Cache(leaks=0.9), "not isolated"),
        (Cache(leaks=1.0, reads=lambda _: None), "not isolated"),
        (
            Cache(leaks=1.0, reads=lambda _: 6.0 * WAY),
            "not isolated",
        ),  # a monitor that always shows the same hides nothing
        (Cache(reads=lambda _: 6.0 * WAY), "contradictory"),
        (Cache(reads=lambda _: 0.0), "contradictory"),
        (Cache(traffic=3.0), "slowed by traffic"),  # it keeps its lines: EPYC 9754 is like that
        (Cache(traffic=3.0, reads=lambda _: None), "not isolated"),
        (Cache(protects=True, traffic=1.0), "shows nothing"),
        (Cache(protects=True, leaks=1.0, traffic=1.0), "shows nothing"),
        (Cache(noise=1.5, reads=lambda _: None), "undecided"),
    ],
)
def test_verdicts(machine, word):
    assert verdict(machine) == word


def test_tied_ways_are_not_isolated_where_the_neighbours_mask_cuts_through_them():
    on = cache(11, shareable=0x600)
    cutting = ways_beside_io(on)
    assert cutting == Ways(0x300, 0x400)
    for tied, word in ((0x600, "not isolated"), (0, "isolated")):
        assert judge(tried(Cache(tied=tied, wanted=1.5), cutting)) == word
    assert ways_beside_io(cache(12, shareable=0)) is None


def test_what_lies_at_the_rules_edge_is_seldom_called_isolated():
    """It is slower by just what is allowed for traffic, so that neither verdict is right."""
    wrong = 0
    for seed in range(300):
        wrong += verdict(Cache(traffic=EDGE, noise=0.1, seed=seed, reads=lambda _: None)) == "isolated"
    assert wrong <= 12  # 1.5 expected at most, of 0.5 %; the binomial's 99.999 % bound is below


def test_intervals_hold_the_truth():
    """Of all looks and comparisons together, and so of one more often than it is said."""
    held = 0
    for seed in range(400):
        found = tried(Cache(traffic=1.2, noise=0.1, seed=seed), Ways(LOWER, UPPER), seed=seed)
        inside = slowdown(found.apart, found.alone)
        held += inside.low < math.log(1.2) < inside.high
    assert held >= 388  # 99 % are 396; the binomial's 99.9 % bound


def test_windows_come_in_random_order_and_no_longer_than_said_before():
    machine = Cache()
    found = tried(machine, Ways(LOWER, UPPER))
    assert len(found.alone) == len(found.apart) == len(found.shared) == RULE.looks.at[0]
    assert set(machine.given) == {(LOWER, None), (LOWER, UPPER), (LOWER, LOWER)}
    orders = {tuple(machine.given[n : n + 3]) for n in range(0, len(machine.given), 3)}
    assert len(orders) > 2
    assert len(tried(Cache(noise=1.5, reads=lambda _: None), Ways(LOWER, UPPER)).alone) == RULE.looks.at[-1]


@pytest.mark.parametrize(
    ("on", "ways"),
    [
        (cache(12, shareable=0xC00), Ways(0x1FF, 0xE00)),  # the neighbour has all ways of I/O
        (cache(11, shareable=0x600), Ways(0xFF, 0x700)),
        (cache(20, shareable=0xC0000), Ways(0x7FFF, 0xF8000)),
        (cache(16, shareable=0), Ways(0xFFF, 0xF000)),
        (cache(4, shareable=0, least_ways=2), Ways(0x3, 0xC)),
        (cache(3, shareable=0, least_ways=2), None),
    ],
)
def test_the_chase_has_three_quarters_and_the_neighbour_the_rest(on, ways):
    assert pairs_of_ways(on) == ways


def test_every_word_has_a_sentence():
    assert set(SENTENCES) == set(WORDS["isolation"])
    said = in_words(tried(Cache(leaks=1.0), Ways(LOWER, UPPER)))
    assert said.startswith(SENTENCES["not isolated"])
    assert said.endswith(".")
