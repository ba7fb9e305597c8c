"""Caches are emptied where occupancy shows it and the first cycle afterwards is slow."""

import math
import random

import pytest

from castmates.study.rdt_trial import WORDS
from castmates.trials.rdt.eviction import SENTENCES, Left, figures, in_words, judge, tried

SIZE = 1 << 24


class Cache:
    """So much is left after each pass; first cycles are the slower the less there is."""

    def __init__(self, left=(0.5, 0.01, 0.0, 0.0, 0.0), slow=3.0, reads=lambda left: left, noise=0.02):
        self.left, self.slow, self.reads, self.noise, self.dice = left, slow, reads, noise, random.Random(3)

    def after(self, passes):
        there = self.left[passes]
        shown = self.reads(there)
        gone = 1 - there / self.left[0]
        ns = 30 * (self.slow or 1) ** gone * math.exp(self.dice.gauss(0, self.noise))
        return Left(None if shown is None else shown * SIZE, ns if self.slow else None)


@pytest.mark.parametrize(
    ("machine", "word"),
    [
        (Cache(), "emptied"),
        (Cache(left=(0.5, 0.3, 0.2, 0.1, 0.01)), "emptied"),
        (Cache(left=(0.5, 0.3, 0.2, 0.1, 0.1)), "not emptied"),
        (Cache(reads=lambda _: 0.5), "not emptied"),
        (Cache(reads=lambda _: 0.0), "undecided"),  # it shows nothing of what was there before either
        (Cache(reads=lambda _: None), "not read"),
        (Cache(slow=1.0), "contradictory"),
        (Cache(slow=0), "emptied"),  # cycles are too short to be timed
        (Cache(noise=2.0), "undecided"),
    ],
)
def test_verdicts(machine, word):
    found = tried(machine, SIZE)
    assert judge(found) == word
    assert in_words(found).startswith(SENTENCES[word].split("{")[0])


def test_the_fewest_passes_are_found():
    assert figures(tried(Cache(left=(0.5, 0.3, 0.2, 0.01, 0.0)), SIZE))["passes"] == 3
    assert figures(tried(Cache(), SIZE))["passes"] == 1
    assert set(SENTENCES) == set(WORDS["eviction"])
