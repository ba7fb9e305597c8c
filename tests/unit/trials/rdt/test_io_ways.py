"""Whether the ways that I/O fills too are tied: seen by time or occupancy, by a rule that was set before."""

import math
import random

import pytest

from castmates.trials.rdt.masks import (
    IO_RULE,
    SEPARATE,
    TIED,
    UNDECIDED,
    IoMasks,
    io_masks,
    io_occupancy,
    io_times,
    io_words,
    judge_all,
    judge_occupancy,
    judge_times,
)
from tests.unit.caches import cache

SKYLAKE = cache(11, shareable=0x600)
WAY = 1 << 20


class Machine:
    """A cache that may tie ways: loads are quicker and more is occupied with more of them."""

    def __init__(self, tied=0, gain=1.5, noise=0.02, seed=1, dma=0.0, shows=True):
        self.tied, self.gain, self.noise, self.dma, self.shows = tied, gain, noise, dma, shows
        self.dice, self.mask, self.given = random.Random(seed), 0, []

    @property
    def ways(self):
        return (self.mask | self.tied if self.mask & self.tied else self.mask).bit_count()

    def set_mask(self, mask):
        self.mask = mask
        self.given.append(mask)

    @property
    def devices(self):
        return self.dma * bool(self.mask & SKYLAKE.shareable)

    def ns_per_load(self):
        quick = min(self.ways * (1 - self.devices) - 1, 1)
        return 100 * self.gain**-quick * math.exp(self.dice.gauss(0, self.noise))

    def occupied(self):
        return (1 - self.devices) * self.ways * WAY if self.shows else None


def tried(machine, on=SKYLAKE):
    masks = io_masks(on)
    return judge_times(io_times(machine, masks)), judge_occupancy(io_occupancy(machine, masks))


@pytest.mark.parametrize(
    ("machine", "by_time", "by_occupancy"),
    [
        (Machine(tied=0x600), TIED, TIED),
        (Machine(), SEPARATE, SEPARATE),
        (Machine(tied=0x600, dma=0.1), TIED, TIED),  # devices take some of what the mask gives
        (Machine(dma=0.1), SEPARATE, SEPARATE),
        (Machine(dma=0.6), UNDECIDED, UNDECIDED),  # they take so much that these ways could be tied
        (Machine(tied=0x600, dma=0.7), UNDECIDED, UNDECIDED),
        (Machine(tied=0x600, shows=False), TIED, UNDECIDED),
        (Machine(tied=0x600, gain=1.0), UNDECIDED, TIED),  # one way and two are equally quick here
        (Machine(tied=0x600, noise=2.0), UNDECIDED, TIED),
    ],
)
def test_verdicts(machine, by_time, by_occupancy):
    assert tried(machine) == (by_time, by_occupancy)


def test_devices_that_write_are_named():
    masks = io_masks(SKYLAKE)
    for dma, named in ((0.6, True), (0.1, False), (0.0, False)):
        times = io_times(Machine(dma=dma), masks)
        assert ("devices write there" in io_words(masks, SEPARATE, SKYLAKE, times)) is named


def test_a_machine_that_lies_in_between_is_seldom_decided():
    """At the edge of the rule, where a mistake is likeliest."""
    masks, wrong = io_masks(SKYLAKE), 0
    for seed in range(300):
        machine = Machine(noise=0.05, seed=seed)
        middle = 100 * machine.gain**-0.5
        slow = machine.ns_per_load
        machine.ns_per_load = lambda machine=machine, slow=slow, middle=middle: (
            middle * math.exp(machine.dice.gauss(0, 0.05)) if machine.mask == masks.io else slow()
        )
        wrong += judge_times(io_times(machine, masks, seed=seed)) != UNDECIDED
    assert wrong <= 12  # 3 expected at most, of 1 %; the binomial's 99.999 % bound


def test_three_masks_take_turns_in_random_order():
    machine = Machine()
    found = io_times(machine, io_masks(SKYLAKE))
    assert len(found.io) == len(found.few) == len(found.joined) == IO_RULE.looks.at[0]
    triples = {tuple(machine.given[n : n + 3]) for n in range(0, len(machine.given), 3)}
    assert {frozenset(triple) for triple in triples} == {frozenset((0x400, 0x1, 0x3))}
    assert len(triples) > 3


@pytest.mark.parametrize(
    ("on", "masks"),
    [
        (SKYLAKE, IoMasks(0x400, 0x1, 0x3)),
        (cache(20, shareable=0xC0000, least_ways=2), IoMasks(0x60000, 0x3, 0x7)),  # two ways at least: one is I/O's
        (cache(12, shareable=0xC00), IoMasks(0x800, 0x1, 0x3)),
        (cache(20, shareable=0xC0001), IoMasks(0x80000, 0x2, 0x6)),  # goresctrl's recording: way 0 is tied to none
        (cache(12, shareable=0), None),
        (cache(12, shareable=0x800), None),  # one way is tied to none
        (cache(4, shareable=0xE), None),  # no room elsewhere
        (cache(12, shareable=0xFFF), None),
    ],
)
def test_masks_to_compare(on, masks):
    assert io_masks(on) == masks
    if masks:
        few, joined = masks.few.bit_count() * WAY, masks.joined.bit_count() * WAY
        assert few < masks.buffer(WAY) < joined


def test_evidence_that_contradicts_itself_decides_nothing():
    assert judge_all([TIED, UNDECIDED, TIED]) == TIED
    assert judge_all([UNDECIDED, SEPARATE]) == SEPARATE
    assert judge_all([TIED, SEPARATE]) == UNDECIDED
    assert judge_all([UNDECIDED]) == UNDECIDED


@pytest.mark.parametrize("verdict", [TIED, SEPARATE, UNDECIDED])
def test_words(verdict):
    said = io_words(io_masks(SKYLAKE), verdict, SKYLAKE)
    assert "600 that I/O fills too" in said
    assert said.endswith(".")
    assert "was not tried" in io_words(None, verdict, SKYLAKE)
    assert "0xc0000 that" in io_words(io_masks(cache(20, shareable=0xC0001)), verdict, cache(20, shareable=0xC0001))
    for apart in (0, 0x801):
        assert io_words(None, verdict, cache(12, shareable=apart)) == ""
