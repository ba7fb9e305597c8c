"""Shares become schemata, and what comes back is judged by meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.rdt.fake import LAB, FakeResctrl
from castmates.rdt.resctrl.capabilities import capabilities
from castmates.rdt.resctrl.wanted_schemata import differences, loses_ways, rounded
from castmates.study.cache import Bandwidth

CACHE = capabilities(FakeResctrl(LAB))
ARM = CACHE.model_copy(update={"bandwidth": Bandwidth(unit="%", least=7, step=7, most=100)})


@given(st.integers(1, 100), st.integers(1, 20))
def test_rounding_is_up_to_a_step_and_never_beyond_what_there_is(asked, step):
    cache = CACHE.model_copy(update={"bandwidth": Bandwidth(unit="%", least=step, step=step, most=100)})
    taken = rounded(asked, cache)
    assert asked <= taken <= 100
    assert taken == 100 or taken % step == 0
    assert taken - asked < step


@pytest.mark.parametrize(
    ("cache", "asked", "found", "same"),
    [
        (CACHE, 60, 60, True),
        (CACHE, 60, 70, False),
        (CACHE, 60, 50, False),
        (ARM, 56, 53, True),
        (ARM, 56, 62, True),
        (ARM, 56, 49, False),
        (ARM, 56, 63, False),
    ],
)
def test_throttles_are_the_same_up_to_the_machines_own_grain(cache, asked, found, same):
    assert (differences({"MB": {0: asked}}, {"MB": {0: found}}, cache) == []) is same


def test_masks_are_the_same_to_the_bit():
    assert differences({"L3": {0: 0x80000}}, {"L3": {0: 0xC0000}}, CACHE) == [
        "L3:0=80000 was asked and L3:0=c0000 is there"
    ]
    assert differences({"L3": {0: 1, 1: 1}}, {"L3": {0: 1}}, CACHE) == ["L3:1=1 was asked and L3:1=nothing is there"]


@given(st.integers(0, 0xFFF), st.integers(0, 0xFFF))
def test_ways_are_lost_where_a_bit_goes(before, after):
    assert loses_ways({"L3": {0: before}}, {"L3": {0: after}}) == (before | after != after)
    assert not loses_ways({"MB": {0: before}}, {"MB": {0: after}})
