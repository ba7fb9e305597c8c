"""The algebra of way masks holds for every mask, and refuses exactly what a kernel refuses."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.study import masks
from tests.unit.caches import cache
from tests.unit.snapshots import assert_as_before, refusal

MASKS = st.integers(0, 2**32 - 1)
untimed = settings(deadline=None)


@st.composite
def caches(draw):
    ways = draw(st.integers(1, 32))
    return cache(
        ways,
        least_ways=draw(st.integers(0, min(3, ways))),
        sparse=draw(st.booleans()),
        shareable=draw(st.integers(0, 2**ways - 1)),
        way_bytes=draw(st.integers(1, 2**24)),
    )


@untimed
@given(MASKS)
def test_runs_are_contiguous_disjoint_and_make_up_the_mask(mask):
    runs = masks.runs(mask)
    assert masks.union(runs) == mask
    assert sum(map(masks.popcount, runs)) == masks.popcount(mask)
    for run in runs:
        assert run == masks.make(masks.popcount(run), masks.positions(run)[0])
    # between two runs there is a hole: together with its antagonist none is contiguous
    assert not any(masks.is_contiguous(one | other) for one, other in pairwise(runs))
    assert masks.is_contiguous(mask) == ("01" not in f"{mask:b}")


@untimed
@given(MASKS, MASKS)
def test_sets_of_ways(one, other):
    left = masks.without(one, other)
    assert set(masks.positions(left)) == set(masks.positions(one)) - set(masks.positions(other))
    assert masks.popcount(masks.union([one, other])) == masks.popcount(left) + masks.popcount(other)
    assert masks.union([left, other]) == masks.union([other, one])


@untimed
@given(MASKS, st.data())
def test_picking_ways_of_a_region(region, data):
    count = masks.popcount(region)
    start = data.draw(st.integers(0, count))
    ways = data.draw(st.integers(0, count - start))
    part = masks.pick(region, ways, start)
    assert masks.popcount(part) == ways
    assert not masks.without(part, region)
    assert masks.positions(part) == masks.positions(region)[start : start + ways]
    with pytest.raises(ValueError, match="there are no"):
        masks.pick(region, count - start + 1, start)


@untimed
@given(MASKS, st.integers(1, 40))
def test_texts_are_read_back(mask, ways):
    text = masks.text_of(mask, ways)
    assert len(text) >= -(-ways // 4)
    assert masks.parse(text) == masks.parse(f"0x{text.upper()}") == mask


def test_what_is_wrong_with_a_mask_is_said():
    told = {repr(text): refusal(masks.parse, text) for text in ("", "0x", "-f", "fg", "f f", "f,f", "1 0", "x1")}
    of = [(0x1000, {}), (0, {}), (0b101, {}), (0b1, {"least_ways": 2}), (0b1101, {"least_ways": 2, "sparse": True}),
          (0, {"least_ways": 0}), (0b101, {"sparse": True})]  # fmt: skip
    told |= {f"{mask:#x} {changed}": masks.refusal(mask, cache(**changed)) for mask, changed in of}
    assert_as_before("masks", told)


def kernel_takes(mask, one) -> bool:
    """cbm_validate() of the kernel, on strings of bits."""
    bits = f"{mask:0{one.ways}b}"[::-1]
    if len(bits) > one.ways or (one.least_ways > 0 and mask == 0):
        return False
    runs = [run for run in bits.split("0") if run]
    if not one.sparse and len(runs) > 1:
        return False
    return len(runs[0] if runs else "") >= one.least_ways


@untimed
@given(caches(), st.integers(0, 2**34 - 1))
def test_refusals_are_those_of_the_kernel(one, mask):
    refused = masks.refusal(mask, one)
    assert bool(refused) != kernel_takes(mask, one)
    assert "\n" not in refused


@untimed
@given(caches(), st.data())
def test_sizes_there_and_back(one, data):
    ways = data.draw(st.integers(0, one.ways))
    mask = masks.make(ways, data.draw(st.integers(0, one.ways - ways)))
    assert masks.ways_of_bytes(masks.bytes_in(mask, one), one) == ways
    assert masks.ways_of_share(ways / one.ways, one) == ways


@untimed
@given(caches(), st.integers(0, 2**30))
def test_an_amount_becomes_the_nearest_number_of_ways(one, amount):
    ways = masks.ways_of_bytes(amount, one)
    assert 2 * abs(ways * one.way_bytes - amount) <= one.way_bytes
    assert masks.ways_of_bytes(amount + 1, one) >= ways


def test_a_machine_that_does_not_tell_the_size_of_a_way():
    silent = cache(way_bytes=None)
    assert masks.bytes_in(3, silent) is None
    assert masks.size_words(3, silent) == "2 ways"
    with pytest.raises(ValueError, match="does not show how large a way is; write ways, or per cent"):
        masks.ways_of_bytes(2**20, silent)
    assert masks.size_words(0xF, cache()) == "4 ways, 6 MiB"


@untimed
@given(caches(), st.booleans())
def test_what_a_study_gives_out_is_a_mask_that_avoids_what_it_should(one, avoid):
    region = masks.region(one, avoid)
    assert not masks.without(region, one.full)
    assert one.sparse or masks.is_contiguous(region)
    if avoid:
        assert not region & one.shareable
    else:
        assert region == one.full
